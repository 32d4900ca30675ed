// The mailbox's promise: whatever is posted is taken, and a sleeper wakes for it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "vmm/device/monotonic_clock.h"
#include "vmm/irqchip/cpu_mailbox.h"
#include "vmm/irqchip/kick_signal.h"
#include "vmm/irqchip/user_irqchip.h"

namespace sipi {
namespace {

TEST(CpuMailbox, WorkPostedBeforeTheSleepEndsItAtOnce) {
  CpuMailbox mailbox(false);
  mailbox.Post(CpuMailbox::kNmi);
  EXPECT_TRUE(mailbox.Sleep(~0u, {}));
  EXPECT_EQ(mailbox.TakeWork(), CpuMailbox::kNmi);
  EXPECT_EQ(mailbox.TakeWork(), 0u);
}

TEST(CpuMailbox, SleepEndsAtItsDeadline) {
  CpuMailbox mailbox(false);
  const uint64_t deadline = MonotonicNs() + 5'000'000;
  EXPECT_FALSE(mailbox.Sleep(~0u, deadline));
  EXPECT_GE(MonotonicNs(), deadline);
}

TEST(CpuMailbox, WorkOutsideTheMaskNeitherEndsASleepNorGetsLost) {
  CpuMailbox mailbox(false);
  mailbox.PostVector(Vector(0x40));
  const uint64_t deadline = MonotonicNs() + 5'000'000;
  EXPECT_FALSE(mailbox.Sleep(CpuMailbox::kStop, deadline));
  EXPECT_GE(MonotonicNs(), deadline);
  EXPECT_EQ(mailbox.TakeWork(), CpuMailbox::kVectors);
  EXPECT_EQ(mailbox.TakeVectors()[1], 1u);
}

TEST(CpuMailbox, APostToACpuThatIsAwakeCostsNoWakeUp) {
  CpuMailbox mailbox(false);
  EXPECT_EQ(mailbox.PostVector(Vector(0x40)), WakeKind::kNone);
  EXPECT_EQ(mailbox.PostVector(Vector(0x41)), WakeKind::kNone);
}

TEST(CpuMailbox, TheGuestIsNotEnteredWithWorkPending) {
  CpuMailbox mailbox(false);
  EXPECT_TRUE(mailbox.EnterGuest());
  mailbox.LeaveGuest();
  mailbox.Post(CpuMailbox::kNmi);
  EXPECT_FALSE(mailbox.EnterGuest());
}

TEST(CpuMailbox, OnlyTheFirstOfManyPostsToARunningCpuSignals) {
  InstallKickSignal();
  CpuMailbox mailbox(false);
  mailbox.SetThread(gettid());
  ASSERT_TRUE(mailbox.EnterGuest());
  EXPECT_EQ(mailbox.PostVector(Vector(0x40)), WakeKind::kSignal);
  EXPECT_EQ(mailbox.PostVector(Vector(0x41)), WakeKind::kNone);
  EXPECT_EQ(mailbox.Post(CpuMailbox::kStop), WakeKind::kNone);
  mailbox.LeaveGuest();
}

TEST(CpuMailbox, InitAndSipiPostedToAnApThatNeverRanAreKeptInOrder) {
  CpuMailbox mailbox(false);
  bool counted = false;
  mailbox.PostInit(&counted);
  EXPECT_TRUE(counted);
  mailbox.PostSipi(Vector(8), &counted);
  EXPECT_TRUE(counted);
  mailbox.PostSipi(Vector(9), &counted);
  EXPECT_FALSE(counted);
  const apic::StartupAction action = mailbox.startup().Take();
  EXPECT_EQ(action.kind, apic::StartupAction::Kind::kInitThenStart);
  EXPECT_EQ(action.vector, Vector(8));
}

// Every vector that a sender posts is seen once per post, however the sleeps and posts fall.
TEST(CpuMailbox, ASleeperMissesNoPost) {
  constexpr int kRounds = 20'000;
  CpuMailbox ping(false);
  CpuMailbox pong(false);
  const auto play = [](CpuMailbox& mine, CpuMailbox& other, bool begins) {
    if (begins) other.PostVector(Vector(0x55));
    for (int i = 0; i < kRounds; ++i) {
      uint64_t got = 0;
      while (got == 0) {
        mine.Sleep(~0u, {});
        if ((mine.TakeWork() & CpuMailbox::kVectors) != 0) got = mine.TakeVectors()[1];
      }
      if (!begins || i + 1 < kRounds) other.PostVector(Vector(0x55));
    }
  };
  std::thread other([&] { play(pong, ping, false); });
  play(ping, pong, true);
  other.join();
}

TEST(CpuMailbox, ManySendersLoseNothing) {
  constexpr uint32_t kSenders = 8;
  constexpr uint32_t kPosts = 4000;
  CpuMailbox mailbox(false);
  std::vector<std::atomic<uint32_t>> answered(kSenders);
  std::vector<std::thread> senders;
  for (uint32_t s = 0; s < kSenders; ++s) {
    senders.emplace_back([&, s] {
      for (uint32_t i = 1; i <= kPosts; ++i) {
        mailbox.PostVector(Vector(static_cast<uint8_t>(0x40 + s)));
        while (answered[s].load(std::memory_order_acquire) != i) std::this_thread::yield();
      }
    });
  }
  uint32_t total = 0;
  while (total < kSenders * kPosts) {
    mailbox.Sleep(~0u, {});
    if ((mailbox.TakeWork() & CpuMailbox::kVectors) == 0) continue;
    const uint64_t bits = mailbox.TakeVectors()[1];
    for (uint32_t s = 0; s < kSenders; ++s) {
      if ((bits >> s & 1) == 0) continue;
      answered[s].fetch_add(1, std::memory_order_release);
      ++total;
    }
  }
  for (std::thread& sender : senders) sender.join();
  EXPECT_EQ(mailbox.TakeVectors()[1], 0u);
}

TEST(SideEvents, KeepTheirOrderInTimeAndCountWhatDoesNotFit) {
  SideEvents events;
  for (uint32_t i = 0; i < 6; ++i) events.Add(100 - i, abi::TraceEvent::kSipiIgnored, i);
  HostLog log(8);
  events.CopyTo(log);
  ASSERT_EQ(log.records().size(), SideEvents::kCapacity);
  EXPECT_EQ(log.records().front().tsc, 97u);
  EXPECT_EQ(log.records().back().tsc, 100u);
  EXPECT_EQ(events.lost(), 2u);
}

class UserIrqchipUnit : public testing::Test {
 protected:
  UserIrqchip Chip(const abi::FaultSpec& fault = {}) {
    return UserIrqchip(ids, apic::ApicMode::kX2Apic, fault,
                       [this](CpuNumber cpu) -> CpuMailbox& { return *mailboxes[cpu.value]; });
  }
  void SetUp() override {
    for (int i = 0; i < 4; ++i) mailboxes.push_back(std::make_unique<CpuMailbox>(i == 0));
  }
  static apic::Icr Command(apic::DeliveryMode mode, uint32_t dest, uint8_t vector = 0) {
    apic::Icr icr;
    icr.mode = mode;
    icr.dest = dest;
    icr.vector = Vector(vector);
    return icr;
  }

  const std::vector<ApicId> ids = {ApicId(7), ApicId(300), ApicId(0), ApicId(4095)};
  std::vector<std::unique_ptr<CpuMailbox>> mailboxes;
  SendCounters counters;
};

TEST_F(UserIrqchipUnit, InitReachesExactlyTheCpuWithThatApicId) {
  UserIrqchip chip = Chip();
  chip.Send(Command(apic::DeliveryMode::kInit, 4095), CpuNumber(0), counters);
  EXPECT_TRUE(mailboxes[3]->startup().Pending());
  EXPECT_FALSE(mailboxes[1]->HasWork());
  EXPECT_FALSE(mailboxes[2]->HasWork());
  EXPECT_EQ(counters.inits, 1u);
}

TEST_F(UserIrqchipUnit, ACommandToAnUnusedIdReachesNobodyAndIsCounted) {
  UserIrqchip chip = Chip();
  chip.Send(Command(apic::DeliveryMode::kInit, 12), CpuNumber(0), counters);
  EXPECT_EQ(counters.undeliverable, 1u);
}

TEST_F(UserIrqchipUnit, AllButSelfNeverHitsTheSender) {
  UserIrqchip chip = Chip();
  apic::Icr icr = Command(apic::DeliveryMode::kInit, 0x1234);
  icr.shorthand = apic::Shorthand::kAllExcludingSelf;
  chip.Send(icr, CpuNumber(0), counters);
  EXPECT_FALSE(mailboxes[0]->HasWork());
  EXPECT_EQ(counters.inits, 3u);
}

TEST_F(UserIrqchipUnit, AnIgnoredSipiIsCountedAndNoted) {
  UserIrqchip chip = Chip();
  chip.SendSipi(CpuNumber(1), Vector(8), counters);
  chip.SendSipi(CpuNumber(1), Vector(9), counters);
  EXPECT_EQ(counters.sipis_ignored, 1u);
  EXPECT_FALSE(mailboxes[1]->side_events().empty());
  EXPECT_EQ(mailboxes[1]->startup().Take().vector, Vector(8));
}

TEST_F(UserIrqchipUnit, ALostSipiIsTheOneThatWasAskedForAfterEachInit) {
  abi::FaultSpec fault;
  fault.kind = abi::Fault::kLostSipi1;
  fault.cpu = 1;
  UserIrqchip chip = Chip(fault);
  for (int i = 0; i < 2; ++i) {
    chip.SendInit(CpuNumber(1), counters);
    chip.SendSipi(CpuNumber(1), Vector(8), counters);
    chip.SendSipi(CpuNumber(1), Vector(9), counters);
    EXPECT_EQ(mailboxes[1]->startup().Take().vector, Vector(9));
  }
  EXPECT_EQ(counters.startup_dropped, 2u);
}

}  // namespace
}  // namespace sipi
