// Case G11: a step that fails, on the way up and down, at every state.
#include <algorithm>
#include <set>

#include "guest/kernel/hotplug/hotplug.h"
#include "guest/kernel/rcu/rcu.h"
#include "tests/kernel/hotplug_timeline.h"

namespace sipi {
namespace {

using abi::CpuhpState;
using abi::TraceEvent;

constexpr CpuNumber kCpu2{2};

// The states in which a CPU can stay, and the steps that a failure can be asked for.
constexpr uint32_t kCanFailUp[] = {1, 43, 58, 82, 83, 84, 147, 188, 234};
constexpr uint32_t kCanFailDown[] = {142, 147, 188, 234};

CpuhpState StateOf(uint32_t number) { return static_cast<CpuhpState>(number); }

// What CPU 2 entered in the last operation.
std::vector<uint32_t> LastStates(KernelMachine& machine) {
  return Operations(machine, TraceEvent::kHotplugBegin, TraceEvent::kHotplugEnd).back().states;
}

// A walk up to the failing step and back: the states that it undoes are those it entered, reversed.
TEST(HotplugFailure, G11EachStepUpIsUndoneInReverseOnce) {
  for (const uint32_t state : kCanFailUp) {
    SCOPED_TRACE(state);
    KernelOptions options;
    options.cpus = 4;
    KernelMachine machine(options);
    machine.Run([state](Kernel& kernel) {
      EXPECT_EQ(CpuDown(kernel, kCpu2, CpuhpState::kOffline), Error::kNone);
      EXPECT_EQ(InjectFailure(kernel, kCpu2, StateOf(state)), Error::kNone);
      EXPECT_EQ(CpuUp(kernel, kCpu2, CpuhpState::kOnline), Error::kStepFailed);
      EXPECT_FALSE(CpuOnline(kernel, kCpu2));
      EXPECT_EQ(kernel.slots[2].sync_state, static_cast<uint32_t>(abi::SyncState::kDead));
      rcu::Synchronize(kernel);
      rcu::SynchronizeExpedited(kernel);
    });
    const std::vector<uint32_t> states = LastStates(machine);
    const auto top = std::find(states.begin(), states.end(), state);
    ASSERT_NE(top, states.end());
    const std::set<uint32_t> up(states.begin(), top + 1);
    EXPECT_EQ(up.size(), static_cast<size_t>(top - states.begin()) + 1) << "entered once";
    std::vector<uint32_t> down(top + 1, states.end());
    EXPECT_TRUE(std::is_sorted(down.rbegin(), down.rend()));
    EXPECT_EQ(std::set<uint32_t>(down.begin(), down.end()).size(), down.size());
    EXPECT_EQ(down.back(), 0u) << "where it was";
  }
}

TEST(HotplugFailure, G11TheNextTryWorks) {
  KernelOptions options;
  options.cpus = 4;
  options.ring_records = 1 << 16;
  KernelMachine machine(options);
  machine.Run([](Kernel& kernel) {
    for (const uint32_t state : kCanFailUp) {
      EXPECT_EQ(CpuDown(kernel, kCpu2, CpuhpState::kOffline), Error::kNone);
      EXPECT_EQ(InjectFailure(kernel, kCpu2, StateOf(state)), Error::kNone);
      EXPECT_EQ(CpuUp(kernel, kCpu2, CpuhpState::kOnline), Error::kStepFailed);
      EXPECT_EQ(CpuUp(kernel, kCpu2, CpuhpState::kOnline), Error::kNone) << state;
    }
    for (const uint32_t state : kCanFailDown) {
      EXPECT_EQ(InjectFailure(kernel, kCpu2, StateOf(state)), Error::kNone);
      EXPECT_EQ(CpuDown(kernel, kCpu2, CpuhpState::kOffline), Error::kStepFailed);
      EXPECT_TRUE(CpuOnline(kernel, kCpu2) && CpuActive(kernel, kCpu2));
      EXPECT_EQ(CpuDown(kernel, kCpu2, CpuhpState::kOffline), Error::kNone);
      EXPECT_EQ(CpuUp(kernel, kCpu2, CpuhpState::kOnline), Error::kNone);
    }
    rcu::Synchronize(kernel);
  });
}

TEST(HotplugFailure, G11EachStepDownIsRedone) {
  for (const uint32_t state : kCanFailDown) {
    SCOPED_TRACE(state);
    KernelOptions options;
    options.cpus = 4;
    KernelMachine machine(options);
    machine.Run([state](Kernel& kernel) {
      EXPECT_EQ(InjectFailure(kernel, kCpu2, StateOf(state)), Error::kNone);
      EXPECT_EQ(CpuDown(kernel, kCpu2, CpuhpState::kOffline), Error::kStepFailed);
      EXPECT_EQ(kernel.slots[2].cpuhp_state, static_cast<uint32_t>(CpuhpState::kOnline));
    });
    const std::vector<uint32_t> states = LastStates(machine);
    // Down to the failing step, then up again by the same ones.
    const auto bottom = std::min_element(states.begin(), states.end());
    EXPECT_TRUE(std::is_sorted(bottom, states.end()));
    EXPECT_TRUE(std::is_sorted(std::make_reverse_iterator(bottom), states.rend()));
    if (state == 234) {
      EXPECT_TRUE(states.empty());
    } else {
      EXPECT_EQ(*bottom, state);
    }
  }
}

TEST(HotplugFailure, G11PartOfTheWay) {
  KernelOptions options;
  options.cpus = 4;
  KernelMachine machine(options);
  machine.Run([](Kernel& kernel) {
    EXPECT_EQ(CpuDown(kernel, kCpu2, StateOf(150)), Error::kNone);
    EXPECT_TRUE(CpuOnline(kernel, kCpu2));
    EXPECT_FALSE(CpuActive(kernel, kCpu2));
    EXPECT_EQ(CpuDown(kernel, kCpu2, StateOf(50)), Error::kNone);
    EXPECT_FALSE(CpuOnline(kernel, kCpu2));
    EXPECT_EQ(kernel.slots[2].prepare_state, 50u);
    // PREPARE teardowns can fail where the CPU is off already.
    EXPECT_EQ(InjectFailure(kernel, kCpu2, StateOf(43)), Error::kNone);
    EXPECT_EQ(CpuDown(kernel, kCpu2, CpuhpState::kOffline), Error::kStepFailed);
    EXPECT_EQ(kernel.slots[2].prepare_state, 50u);
    EXPECT_EQ(CpuUp(kernel, kCpu2, StateOf(147)), Error::kNone);
    EXPECT_TRUE(CpuOnline(kernel, kCpu2));
    EXPECT_FALSE(CpuActive(kernel, kCpu2));
    EXPECT_EQ(CpuUp(kernel, kCpu2, CpuhpState::kOnline), Error::kNone);
    EXPECT_TRUE(CpuActive(kernel, kCpu2));
    for (const uint32_t state : {1u, 82u, 84u, 85u, 100u, 141u, 142u, 236u}) {
      EXPECT_EQ(CpuDown(kernel, kCpu2, StateOf(state)), Error::kInvalid) << state;
      EXPECT_EQ(CpuUp(kernel, kCpu2, StateOf(state)), Error::kInvalid) << state;
    }
    EXPECT_EQ(CpuDown(kernel, kBootCpu, CpuhpState::kOffline), Error::kInvalid);
    EXPECT_EQ(CpuUp(kernel, CpuNumber(4), CpuhpState::kOnline), Error::kInvalid);
  });
}

TEST(HotplugFailure, G11WhatCannotFailIsRefused) {
  KernelOptions options;
  options.cpus = 4;
  KernelMachine machine(options);
  machine.Run([](Kernel& kernel) {
    for (uint32_t state = 0; state < 240; ++state) {
      const bool can = std::count(std::begin(kCanFailDown), std::end(kCanFailDown), state) != 0;
      const Error error = InjectFailure(kernel, kCpu2, StateOf(state));
      EXPECT_EQ(error, can ? Error::kNone : Error::kInvalid) << state;
      ClearFailure(kernel, kCpu2);
    }
    EXPECT_EQ(CpuDown(kernel, kCpu2, CpuhpState::kOffline), Error::kNone);
  });
}

}  // namespace
}  // namespace sipi
