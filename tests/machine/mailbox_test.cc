// The mailbox's promise: whatever is posted is taken, and a sleeper wakes for it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "vmm/device/monotonic_clock.h"
#include "vmm/irqchip/cpu_mailbox.h"
#include "vmm/irqchip/kick_signal.h"

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

TEST(CpuMailbox, ALevelInterruptIsTakenAsOneAndDoesNotMergeWithAnEdge) {
  CpuMailbox mailbox(false);
  mailbox.PostVector(Vector(0x41), /*level=*/true);
  mailbox.PostVector(Vector(0x42));
  mailbox.PostVector(Vector(0x43));
  mailbox.PostVector(Vector(0x43), /*level=*/true);
  EXPECT_EQ(mailbox.TakeWork(), CpuMailbox::kVectors);
  EXPECT_EQ(mailbox.TakeVectors()[1], 0b1100u);
  EXPECT_EQ(mailbox.TakeLevels()[1], 0b1010u);
  EXPECT_EQ(mailbox.TakeLevels()[1], 0u);
}

// Whoever takes an edge while a level of the same vector arrives must leave the level for later:
// its end has to reach the I/O APIC.
TEST(CpuMailbox, ALevelThatArrivesBetweenTheTakesOfVectorsAndLevelsKeepsItsKind) {
  CpuMailbox mailbox(false);
  mailbox.PostVector(Vector(0x41));
  mailbox.TakeWork();
  EXPECT_EQ(mailbox.TakeVectors()[1], 0b10u);
  mailbox.PostVector(Vector(0x41), /*level=*/true);
  EXPECT_EQ(mailbox.TakeLevels()[1], 0b10u);
  EXPECT_EQ(mailbox.TakeVectors()[1], 0u) << "it is no edge as well";
}

TEST(CpuMailbox, OfManyNmisTwoCount) {
  CpuMailbox mailbox(false);
  EXPECT_EQ(mailbox.TakeNmis(), 0u);
  mailbox.PostNmi();
  EXPECT_EQ(mailbox.TakeNmis(), 1u);
  for (int i = 0; i < 5; ++i) mailbox.PostNmi();
  EXPECT_EQ(mailbox.TakeWork(), CpuMailbox::kNmi);
  EXPECT_EQ(mailbox.TakeNmis(), 2u);
  EXPECT_EQ(mailbox.TakeNmis(), 0u);
}

TEST(CpuMailbox, AnInitTakesBackTheNmisAndTheExtIntBeforeItAndNoneAfterIt) {
  CpuMailbox mailbox(false);
  bool counted = false;
  mailbox.PostNmi();
  mailbox.Post(CpuMailbox::kExtInt);
  mailbox.PostVector(Vector(0x41));
  mailbox.PostInit(&counted);
  EXPECT_EQ(mailbox.TakeNmis(), 0u);
  mailbox.PostNmi();
  EXPECT_EQ(mailbox.TakeWork(), CpuMailbox::kStartup | CpuMailbox::kVectors | CpuMailbox::kNmi);
  EXPECT_EQ(mailbox.TakeNmis(), 1u);
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

TEST(SideEvents, HaveRoomForAsManyStartsAsWereAskedFor) {
  SideEvents events(SideEvents::kCapacity * 3);
  for (uint32_t i = 0; i < 12; ++i) events.Add(i, abi::TraceEvent::kSipiIgnored, i);
  EXPECT_EQ(events.lost(), 0u);
  HostLog log(events.capacity());
  events.CopyTo(log);
  EXPECT_EQ(log.records().size(), 12u);
}

}  // namespace
}  // namespace sipi
