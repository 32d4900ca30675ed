// The whole IPI path of irqchip `user` with real threads and without KVM: senders route commands to
// mailboxes, targets sleep or sit in a "guest" that only the kick signal ends. Meant for
// ThreadSanitizer above all. A message or wake-up that gets lost is a failure after kPatience.
#include <gtest/gtest.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <memory>
#include <thread>
#include <vector>

#include "vmm/device/monotonic_clock.h"
#include "vmm/irqchip/cpu_mailbox.h"
#include "vmm/irqchip/kick_signal.h"
#include "vmm/irqchip/user_irqchip.h"

namespace sipi {
namespace {

constexpr uint32_t kSenders = 4;
constexpr uint32_t kTargets = 3;
constexpr uint32_t kRounds = 1500;
constexpr uint64_t kPatienceNs = 20'000'000'000;
constexpr uint8_t kFirstVector = 0x40;  // sender i's is this + i

// What one target has seen. The senders wait for these.
struct Seen {
  std::array<std::atomic<uint32_t>, kSenders> vectors = {};
  std::atomic<uint32_t> starts{0};
  std::atomic<uint32_t> nmis{0};
};

class IpiPath : public testing::Test {
 protected:
  static constexpr uint32_t kCpus = kSenders + kTargets;

  void SetUp() override {
    InstallKickSignal();
    std::vector<ApicId> ids;
    for (uint32_t cpu = 0; cpu < kCpus; ++cpu) {
      ids.push_back(ApicId(cpu * 3));
      mailboxes_.push_back(std::make_unique<CpuMailbox>(cpu == 0));
    }
    chip_ = std::make_unique<UserIrqchip>(
        ids, apic::ApicMode::kX2Apic, abi::FaultSpec(),
        [this](CpuNumber cpu) -> CpuMailbox& { return *mailboxes_[cpu.value]; });
    // The senders stay disabled in software, so that broadcasts of vectors go to targets only.
    for (uint32_t cpu = kSenders; cpu < kCpus; ++cpu) PublishEnabled(cpu, 0);
  }

  void PublishEnabled(uint32_t cpu, uint8_t priority) {
    apic::RoutingState state = chip_->routing().State(CpuNumber(cpu));
    state.software_enabled = true;
    state.priority = priority;
    chip_->routing().Publish(CpuNumber(cpu), state);
  }

  static apic::Icr Command(apic::DeliveryMode mode, uint32_t target, uint8_t vector = 0) {
    apic::Icr icr;
    icr.mode = mode;
    icr.dest = (kSenders + target) * 3;
    icr.vector = Vector(vector);
    return icr;
  }

  // The target's thread: what UserVcpu does around KVM_RUN.
  void Serve(uint32_t target) {
    CpuMailbox& mailbox = *mailboxes_[kSenders + target];
    sigset_t kick;
    sigemptyset(&kick);
    sigaddset(&kick, KickSignal());
    pthread_sigmask(SIG_BLOCK, &kick, nullptr);  // the "guest" waits for it
    mailbox.SetThread(gettid());
    for (uint32_t turn = 0; !mailbox.StopPosted(); ++turn) {
      TakeAll(mailbox, seen_[target]);
      PublishEnabled(kSenders + target, static_cast<uint8_t>(turn % 16 << 4));
      if (turn % 3 == 0) {
        if (!mailbox.Sleep(~0u, MonotonicNs() + kPatienceNs)) lost_.fetch_add(1);
      } else if (mailbox.EnterGuest()) {
        const timespec patience = {.tv_sec = kPatienceNs / 1'000'000'000, .tv_nsec = 0};
        if (sigtimedwait(&kick, nullptr, &patience) < 0) lost_.fetch_add(1);
        mailbox.LeaveGuest();
      }
    }
  }

  void TakeAll(CpuMailbox& mailbox, Seen& seen) {
    const uint32_t work = mailbox.TakeWork();
    if ((work & CpuMailbox::kStartup) != 0) {
      const apic::StartupAction action = mailbox.startup().Take();
      if (action.kind == apic::StartupAction::Kind::kStart ||
          action.kind == apic::StartupAction::Kind::kInitThenStart) {
        seen.starts.fetch_add(1, std::memory_order_release);
      }
    }
    if ((work & CpuMailbox::kNmi) != 0) seen.nmis.fetch_add(1, std::memory_order_release);
    if ((work & CpuMailbox::kVectors) == 0) return;
    const CpuMailbox::VectorWords words = mailbox.TakeVectors();
    for (uint64_t bits = words[1]; bits != 0; bits &= bits - 1) {
      const auto sender = static_cast<uint32_t>(std::countr_zero(bits));
      // What the sender wrote before it sent must be seen here: plain memory, for ThreadSanitizer.
      if (letters_[sender] == 0) lost_.fetch_add(1);
      seen.vectors[sender].fetch_add(1, std::memory_order_release);
    }
  }

  // False, and noted, if `word` does not get to `value` in time.
  bool Await(const std::atomic<uint32_t>& word, uint32_t value) {
    const uint64_t deadline_ns = MonotonicNs() + kPatienceNs;
    while (word.load(std::memory_order_acquire) < value) {
      if (MonotonicNs() > deadline_ns) {
        lost_.fetch_add(1);
        return false;
      }
      std::this_thread::yield();
    }
    return true;
  }

  // A round of sender `i`: a fixed IPI to one target, to all by shorthand now and then. Sender 0
  // also restarts a target, and sender 1 sends it an NMI.
  bool SendRound(uint32_t i, uint32_t round, std::array<uint32_t, kTargets>& sent) {
    SendCounters& counters = counters_[i];
    const uint32_t target = round % kTargets;
    letters_[i] = round;
    apic::Icr fixed =
        Command(apic::DeliveryMode::kFixed, target, static_cast<uint8_t>(kFirstVector + i));
    const bool broadcast = round % 8 == 0;
    if (broadcast) fixed.shorthand = apic::Shorthand::kAllExcludingSelf;
    chip_->Send(fixed, CpuNumber(i), counters);
    for (uint32_t t = 0; t < kTargets; ++t) {
      if (!broadcast && t != target) continue;
      if (!Await(seen_[t].vectors[i], ++sent[t])) return false;
    }
    if (i == 0) return Restart(target, counters);
    if (i == 1) {
      const uint32_t before = seen_[target].nmis.load(std::memory_order_acquire);
      chip_->Send(Command(apic::DeliveryMode::kNmi, target), CpuNumber(i), counters);
      return Await(seen_[target].nmis, before + 1);
    }
    return true;
  }

  bool Restart(uint32_t target, SendCounters& counters) {
    const uint32_t before = seen_[target].starts.load(std::memory_order_acquire);
    chip_->Send(Command(apic::DeliveryMode::kInit, target), CpuNumber(0), counters);
    for (int i = 0; i < 2; ++i) {
      chip_->Send(Command(apic::DeliveryMode::kStartUp, target, 8), CpuNumber(0), counters);
    }
    return Await(seen_[target].starts, before + 1);
  }

  std::vector<std::unique_ptr<CpuMailbox>> mailboxes_;
  std::unique_ptr<UserIrqchip> chip_;
  std::array<Seen, kTargets> seen_;
  std::array<SendCounters, kSenders> counters_;
  std::array<uint32_t, kSenders> letters_ = {};  // plain memory: see TakeAll
  std::atomic<uint32_t> lost_{0};
};

TEST_F(IpiPath, ManySendersReachSleepingAndRunningTargetsEachTime) {
  std::vector<std::thread> targets;
  for (uint32_t t = 0; t < kTargets; ++t) targets.emplace_back([this, t] { Serve(t); });
  std::vector<std::thread> senders;
  for (uint32_t i = 0; i < kSenders; ++i) {
    senders.emplace_back([this, i] {
      std::array<uint32_t, kTargets> sent = {};
      for (uint32_t round = 1; round <= kRounds && SendRound(i, round, sent);) ++round;
    });
  }
  for (std::thread& sender : senders) sender.join();
  for (uint32_t cpu = kSenders; cpu < kCpus; ++cpu) mailboxes_[cpu]->Post(CpuMailbox::kStop);
  for (std::thread& target : targets) target.join();
  EXPECT_EQ(lost_.load(), 0u);
  uint32_t starts = 0;
  for (const Seen& seen : seen_) starts += seen.starts.load();
  EXPECT_EQ(starts, kRounds) << "each INIT, SIPI, SIPI is one start";
  EXPECT_EQ(counters_[0].sipis, 2 * kRounds);
  EXPECT_EQ(counters_[2].undeliverable, 0u);
}

}  // namespace
}  // namespace sipi
