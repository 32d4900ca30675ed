// Host-driven bring-up against APs that are played by the test.
#include "vmm/sequencer/host_sequencer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <thread>

#include "guest/abi/cpuhp_state.h"
#include "guest/abi/layout.h"

namespace sipi {
namespace {

using abi::SyncState;

void Store(uint32_t& word, uint32_t value) { std::atomic_ref(word).store(value); }

// Notes what is sent; its APs follow the handshake at once, but those in `dead`.
class ScriptedAps final : public StartupSender {
 public:
  ScriptedAps(std::span<abi::CpuSlot> slots, bool on_their_own)
      : slots_(slots), on_their_own_(on_their_own) {}

  absl::Status SendInit(CpuNumber target) override {
    sent.push_back("init " + std::to_string(target.value));
    return absl::OkStatus();
  }
  absl::Status SendStartup(CpuNumber target, Vector vector) override {
    EXPECT_EQ(vector, Vector(abi::kTrampolineVector));
    sent.push_back("sipi " + std::to_string(target.value));
    abi::CpuSlot& slot = slots_[target.value];
    if (dead.count(target.value) != 0) return absl::OkStatus();
    if (slot.sync_state != static_cast<uint32_t>(SyncState::kKicked)) return absl::OkStatus();
    if (on_their_own_) {
      Online(slot);
    } else {
      Store(slot.sleeping, 1);
      Store(slot.sync_state, static_cast<uint32_t>(SyncState::kAlive));
    }
    return absl::OkStatus();
  }
  absl::Status SendInterrupt(CpuNumber target, Vector vector) override {
    EXPECT_EQ(vector, Vector(abi::kWakeVector));
    sent.push_back("wake " + std::to_string(target.value));
    if (target.value != 0) Online(slots_[target.value]);
    return absl::OkStatus();
  }

  std::vector<std::string> sent;
  std::set<uint32_t> dead;

 private:
  static void Online(abi::CpuSlot& slot) {
    Store(slot.sleeping, 0);
    Store(slot.sync_state, static_cast<uint32_t>(SyncState::kOnline));
    Store(slot.online, 1);
    Store(slot.cpuhp_state, static_cast<uint32_t>(abi::CpuhpState::kOnline));
  }
  std::span<abi::CpuSlot> slots_;
  const bool on_their_own_;
};

class HostSequencerTest : public testing::Test {
 protected:
  HostSequence SequenceOf(sequence::StrategyId id) {
    HostSequence sequence;
    sequence.strategy = sequence::MakeStrategy(id);
    sequence.knobs.handshake_timeout_ms = 100;
    sequence.knobs.kick.sipi_count = 1;
    sequence.order = {1, 2, 3};
    sequence.is_primary = {true, false, true, false};
    sequence.slots = slots;
    sequence.result = &result;
    return sequence;
  }

  std::vector<abi::CpuSlot> slots = std::vector<abi::CpuSlot>(4);
  abi::ResultPage result = {};
  HostLog log{256};
};

TEST_F(HostSequencerTest, SerialTakesEachCpuAllTheWayBeforeTheNext) {
  ScriptedAps aps(slots, false);
  HostSequencer sequencer(SequenceOf(sequence::StrategyId::kSerial), aps, log);
  ASSERT_TRUE(sequencer.Run().ok());
  EXPECT_EQ(aps.sent, (std::vector<std::string>{"init 1", "sipi 1", "wake 1", "init 2", "sipi 2",
                                                "wake 2", "init 3", "sipi 3", "wake 3", "wake 0"}));
  EXPECT_EQ(result.host_sequence_done, 1u);
}

TEST_F(HostSequencerTest, KickSendsEverythingBeforeItWaits) {
  ScriptedAps aps(slots, false);
  HostSequencer sequencer(SequenceOf(sequence::StrategyId::kKick), aps, log);
  ASSERT_TRUE(sequencer.Run().ok());
  EXPECT_EQ(aps.sent, (std::vector<std::string>{"init 1", "sipi 1", "init 2", "sipi 2", "init 3",
                                                "sipi 3", "wake 1", "wake 2", "wake 3", "wake 0"}));
}

TEST_F(HostSequencerTest, PrimaryFirstBringsPrimariesOnlineBeforeSiblingsAreKicked) {
  ScriptedAps aps(slots, false);
  HostSequencer sequencer(SequenceOf(sequence::StrategyId::kPrimaryFirst), aps, log);
  ASSERT_TRUE(sequencer.Run().ok());
  EXPECT_EQ(aps.sent, (std::vector<std::string>{"init 2", "sipi 2", "wake 2", "init 1", "sipi 1",
                                                "init 3", "sipi 3", "wake 1", "wake 3", "wake 0"}));
}

TEST_F(HostSequencerTest, BroadcastSendsOneRoundToAllAps) {
  ScriptedAps aps(slots, true);
  HostSequencer sequencer(SequenceOf(sequence::StrategyId::kBroadcast), aps, log);
  ASSERT_TRUE(sequencer.Run().ok());
  EXPECT_EQ(aps.sent, (std::vector<std::string>{"init 1", "init 2", "init 3", "sipi 1", "sipi 2",
                                                "sipi 3", "wake 0"}));
}

TEST_F(HostSequencerTest, EveryStrategyBringsAllCpusOnline) {
  for (uint32_t id = 0; id < sequence::kStrategyCount; ++id) {
    std::fill(slots.begin(), slots.end(), abi::CpuSlot{});
    const auto strategy = static_cast<sequence::StrategyId>(id);
    ScriptedAps aps(slots, sequence::MakeStrategy(strategy).ApsRunOnTheirOwn());
    HostSequencer sequencer(SequenceOf(strategy), aps, log);
    ASSERT_TRUE(sequencer.Run().ok()) << sequence::BaseName(strategy);
    for (size_t cpu = 1; cpu < slots.size(); ++cpu) EXPECT_EQ(slots[cpu].online, 1u);
  }
}

TEST_F(HostSequencerTest, ADeadCpuIsGivenUpAndTheOthersComeUp) {
  for (const auto id : {sequence::StrategyId::kSerial, sequence::StrategyId::kFull}) {
    std::fill(slots.begin(), slots.end(), abi::CpuSlot{});
    ScriptedAps aps(slots, sequence::MakeStrategy(id).ApsRunOnTheirOwn());
    aps.dead = {2};
    HostSequencer sequencer(SequenceOf(id), aps, log);
    ASSERT_TRUE(sequencer.Run().ok());
    EXPECT_EQ(slots[2].error, static_cast<uint32_t>(abi::GuestError::kTimeoutAlive));
    EXPECT_EQ(slots[2].sync_state, static_cast<uint32_t>(SyncState::kShouldDie));
    EXPECT_EQ(slots[1].online + slots[3].online, 2u);
  }
}

TEST_F(HostSequencerTest, AVetoOfTheGuestFallsBackToSerial) {
  result.veto = static_cast<uint32_t>(abi::Veto::kVendor);
  ScriptedAps aps(slots, false);
  HostSequencer sequencer(SequenceOf(sequence::StrategyId::kFull), aps, log);
  ASSERT_TRUE(sequencer.Run().ok());
  EXPECT_EQ(aps.sent[3], "init 2") << "CPU 1 is all the way up first";
}

TEST_F(HostSequencerTest, StopEndsAWaitAndTheGuestIsNotToldThatItIsDone) {
  ScriptedAps aps(slots, false);
  aps.dead = {1, 2, 3};
  HostSequence sequence = SequenceOf(sequence::StrategyId::kSerial);
  // What would end it otherwise is far away: meson would end the test before.
  sequence.knobs.handshake_timeout_ms = 3'600'000;
  sequence.knobs.kick.init_delay_us = 3'600'000'000;
  HostSequencer sequencer(std::move(sequence), aps, log);
  std::thread stopper([&] { sequencer.Stop(); });
  EXPECT_TRUE(sequencer.Run().ok());
  stopper.join();
  EXPECT_EQ(result.host_sequence_done, 0u);
}

TEST_F(HostSequencerTest, EventsComeInPairsOnTheVmTrack) {
  ScriptedAps aps(slots, false);
  HostSequencer sequencer(SequenceOf(sequence::StrategyId::kKickWait), aps, log);
  ASSERT_TRUE(sequencer.Run().ok());
  const auto count = [&](abi::TraceEvent event) {
    return std::count_if(log.records().begin(), log.records().end(),
                         [event](const abi::TraceRecord& r) { return r.event == event; });
  };
  EXPECT_EQ(count(abi::TraceEvent::kSmpbootBegin), 1);
  EXPECT_EQ(count(abi::TraceEvent::kSmpbootEnd), 1);
  EXPECT_EQ(log.records().back().value, 3u) << "CPUs online";
  EXPECT_EQ(count(abi::TraceEvent::kKickBegin), 3);
  EXPECT_EQ(count(abi::TraceEvent::kKickEnd), 3);
  EXPECT_EQ(count(abi::TraceEvent::kWaitAliveBegin), 3);
  EXPECT_EQ(count(abi::TraceEvent::kWaitAliveEnd), 3);
  EXPECT_EQ(count(abi::TraceEvent::kRelease), 3);
  EXPECT_EQ(count(abi::TraceEvent::kPassBegin), 3);
  EXPECT_EQ(count(abi::TraceEvent::kIpiSent), 6);
}

}  // namespace
}  // namespace sipi
