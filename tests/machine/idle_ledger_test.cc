// Detecting that nothing can ever happen again: never too early, and always in the end.
#include "vmm/irqchip/idle_ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <thread>
#include <vector>

#include "vmm/irqchip/cpu_mailbox.h"

namespace sipi {
namespace {

TEST(IdleLedger, IsIdleOnlyWhenAllParticipantsAreBlocked) {
  IdleLedger ledger(2);
  const auto no_work = [] { return false; };
  EXPECT_FALSE(ledger.Enter());
  EXPECT_FALSE(ledger.AllIdle(no_work));
  EXPECT_TRUE(ledger.Enter());
  EXPECT_TRUE(ledger.AllIdle(no_work));
  ledger.Leave();
  EXPECT_FALSE(ledger.AllIdle(no_work));
}

TEST(IdleLedger, IsNotIdleWhileAMailboxHoldsWork) {
  IdleLedger ledger(1);
  ledger.Enter();
  EXPECT_FALSE(ledger.AllIdle([] { return true; }));
}

TEST(IdleLedger, AWakeUpDuringTheLookAtTheMailboxesIsSeen) {
  IdleLedger ledger(1);
  ledger.Enter();
  EXPECT_FALSE(ledger.AllIdle([&] {
    ledger.Leave();  // it takes its work ...
    ledger.Enter();  // ... and blocks again, all while we look
    return false;
  }));
}

// Threads that pass tokens on at random until each token has made its hops, then block for good.
// The ledger may report idleness only when no token is left; and in the end somebody must report
// it.
TEST(IdleLedger, ReportsExactlyTheEndOfRandomMessagePassing) {
  constexpr uint32_t kThreads = 8;
  constexpr uint64_t kHops = 20'000;
  std::deque<CpuMailbox> mailboxes;
  for (uint32_t i = 0; i < kThreads; ++i) mailboxes.emplace_back(false);
  IdleLedger ledger(kThreads);
  std::atomic<uint64_t> hops_left{kHops};
  std::atomic<uint32_t> reports{0};
  std::atomic<bool> too_early{false};
  const auto check = [&] {
    const bool idle = ledger.AllIdle([&] {
      return std::any_of(mailboxes.begin(), mailboxes.end(),
                         [](const CpuMailbox& mailbox) { return mailbox.HasWork(); });
    });
    if (!idle) return;
    if (hops_left.load() != 0) too_early = true;
    if (reports.fetch_add(1) == 0) {
      for (CpuMailbox& mailbox : mailboxes) mailbox.Post(CpuMailbox::kStop);
    }
  };
  const auto play = [&](uint32_t self) {
    uint32_t random = self * 2654435761u + 1;
    while (true) {
      bool entered = false;
      mailboxes[self].Sleep(~0u, {}, [&] {
        entered = true;
        if (ledger.Enter()) check();
      });
      if (entered) ledger.Leave();
      const uint32_t work = mailboxes[self].TakeWork();
      if ((work & CpuMailbox::kStop) != 0) return;
      if ((work & CpuMailbox::kNmi) == 0) continue;
      uint64_t left = hops_left.load();
      while (left != 0 && !hops_left.compare_exchange_weak(left, left - 1)) {
      }
      if (left <= 1) continue;
      random = random * 1664525u + 1013904223u;
      mailboxes[(self + 1 + (random >> 16) % (kThreads - 1)) % kThreads].Post(CpuMailbox::kNmi);
    }
  };
  mailboxes[0].Post(CpuMailbox::kNmi);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) threads.emplace_back(play, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(too_early);
  EXPECT_GE(reports.load(), 1u);
  EXPECT_EQ(hops_left.load(), 0u);
}

}  // namespace
}  // namespace sipi
