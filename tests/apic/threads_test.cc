// The lock-free parts under real threads. Says most when built with -fsanitize=thread.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "apic/model/init_sipi.h"
#include "apic/model/router.h"

namespace sipi::apic {
namespace {

using Kind = StartupAction::Kind;

// Case A2: a target that looks at any moment restarts exactly once per INIT, SIPI, SIPI.
TEST(ThreadsTest, OneRestartPerInitSipiSipi) {
  constexpr uint32_t kRounds = 20'000;
  StartupMailbox mailbox(false);
  std::atomic<uint32_t> starts = 0;
  uint32_t payload = 0;  // plain: a post must make it visible to the start that it causes
  std::atomic<bool> stop = false;
  bool payload_seen = true;
  std::thread target([&] {
    uint32_t seen = 0;
    while (!stop.load(std::memory_order_relaxed)) {
      const Kind kind = mailbox.Take().kind;
      if (kind == Kind::kStart || kind == Kind::kInitThenStart) {
        payload_seen = payload_seen && payload == ++seen;
        starts.fetch_add(1, std::memory_order_release);
      }
      std::this_thread::yield();
    }
  });
  for (uint32_t round = 1; round <= kRounds; ++round) {
    payload = round;
    mailbox.PostInit();
    mailbox.PostSipi(Vector(8));
    mailbox.PostSipi(Vector(8));
    while (starts.load(std::memory_order_acquire) < round) std::this_thread::yield();
    ASSERT_EQ(starts.load(std::memory_order_acquire), round);
  }
  stop = true;
  target.join();
  EXPECT_EQ(starts.load(), kRounds);
  EXPECT_TRUE(payload_seen);
}

// Case A1: INIT, SIPI, SIPI posted before the AP's thread first runs.
TEST(ThreadsTest, ApStartsHoweverLateItsThreadIs) {
  for (int round = 0; round < 500; ++round) {
    StartupMailbox mailbox(false);
    std::thread bsp([&] {
      mailbox.PostInit();
      mailbox.PostSipi(Vector(0x9a));
      mailbox.PostSipi(Vector(0x9a));
    });
    StartupAction action;
    while (action.kind != Kind::kStart && action.kind != Kind::kInitThenStart) {
      action = mailbox.Take();
      std::this_thread::yield();
    }
    bsp.join();
    EXPECT_EQ(action.vector, Vector(0x9a));
    EXPECT_EQ(mailbox.Take().kind == Kind::kStart, false);
  }
}

TEST(ThreadsTest, BroadcastsHitEachCpuOnceWhileCpusSwitchModes) {
  std::vector<ApicId> ids;
  for (uint32_t i = 0; i < 64; ++i) ids.push_back(ApicId(i));
  RoutingTable table(ids);
  const auto publish = [&](uint32_t cpu, ApicMode mode) {
    RoutingState state;
    state.mode = mode;
    state.software_enabled = true;
    state.ldr = mode == ApicMode::kX2Apic ? X2ApicLogicalId(ids[cpu]) : 0x01000000;
    table.Publish(CpuNumber(cpu), state);
  };
  for (uint32_t cpu = 0; cpu < 64; ++cpu) publish(cpu, ApicMode::kX2Apic);
  std::atomic<bool> stop = false;
  std::thread switcher([&] {
    while (!stop.load(std::memory_order_relaxed)) {
      for (uint32_t cpu = 1; cpu < 64; ++cpu) publish(cpu, ApicMode::kXApic);
      for (uint32_t cpu = 1; cpu < 64; ++cpu) publish(cpu, ApicMode::kX2Apic);
    }
  });
  Icr icr;
  icr.vector = Vector(0x30);
  icr.shorthand = Shorthand::kAllExcludingSelf;
  for (int round = 0; round < 50'000; ++round) {
    uint64_t hit = 0;
    table.ForEachTarget(icr, CpuNumber(0), [&](CpuNumber cpu) { hit ^= uint64_t{1} << cpu.value; });
    ASSERT_EQ(hit, ~uint64_t{1});
  }
  stop = true;
  switcher.join();
}

}  // namespace
}  // namespace sipi::apic
