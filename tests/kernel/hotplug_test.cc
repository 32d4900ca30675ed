// CPUs down and up on the simulated machine: cases G5, G9, G11, G12 of the project's list, and how
// many grace periods each operation waits for.
#include "guest/kernel/hotplug/hotplug.h"

#include "guest/kernel/rcu/read_side.h"
#include "guest/kernel/sched/smp_call.h"
#include "guest/kernel/sched/time.h"
#include "guest/kernel/sched/wait.h"
#include "tests/kernel/hotplug_timeline.h"

namespace sipi {
namespace {

using abi::CpuhpState;
using abi::TraceEvent;

constexpr CpuNumber kCpu2{2};

void WaitUntilSettled(Kernel& kernel) {
  for (uint32_t i = 0; i < 1000 && !HotplugSettled(kernel); ++i) SleepJiffies(1);
  EXPECT_TRUE(HotplugSettled(kernel));
}

TEST(Hotplug, EveryStrategyBringsAllCpusUpOnTheirThreads) {
  for (const sequence::StrategyId strategy :
       {sequence::StrategyId::kSerial, sequence::StrategyId::kKick, sequence::StrategyId::kKickWait,
        sequence::StrategyId::kPrimaryFirst, sequence::StrategyId::kFull,
        sequence::StrategyId::kBroadcast, sequence::StrategyId::kTree}) {
    KernelOptions options;
    options.cpus = 9;
    options.strategy = strategy;
    KernelMachine machine(options);
    machine.Run([](Kernel& kernel) {
      for (uint32_t cpu = 0; cpu < 9; ++cpu) {
        EXPECT_TRUE(CpuOnline(kernel, CpuNumber(cpu)));
        EXPECT_TRUE(CpuActive(kernel, CpuNumber(cpu)));
        EXPECT_EQ(kernel.slots[cpu].cpuhp_state, static_cast<uint32_t>(CpuhpState::kOnline));
      }
      rcu::Synchronize(kernel);
    });
  }
}

TEST(Hotplug, OneCpuDownAndUp) {
  KernelOptions options;
  options.cpus = 4;
  KernelMachine machine(options);
  machine.Run([](Kernel& kernel) {
    WaitUntilSettled(kernel);
    EXPECT_EQ(CpuDown(kernel, kCpu2, CpuhpState::kOffline), Error::kNone);
    EXPECT_FALSE(CpuOnline(kernel, kCpu2));
    EXPECT_FALSE(CpuActive(kernel, kCpu2));
    EXPECT_FALSE(CpuDying(kernel, kCpu2));
    EXPECT_TRUE(CpuPresent(kernel, kCpu2));
    EXPECT_EQ(kernel.slots[2].sync_state, static_cast<uint32_t>(abi::SyncState::kDead));
    rcu::Synchronize(kernel);
    rcu::SynchronizeExpedited(kernel);
    WaitUntilSettled(kernel);
    EXPECT_EQ(CpuUp(kernel, kCpu2, CpuhpState::kOnline), Error::kNone);
    EXPECT_TRUE(CpuOnline(kernel, kCpu2));
    EXPECT_TRUE(CpuActive(kernel, kCpu2));
    rcu::Synchronize(kernel);
  });
  EXPECT_EQ(machine.CountOf(TraceEvent::kDead), 1u);
}

// How many grace periods each of six operations waited for: CPU 2 off and on, three times.
std::vector<uint32_t> WaitsOfOperations(const KernelOptions& options) {
  KernelMachine machine(options);
  machine.Run([](Kernel& kernel) {
    for (int round = 0; round < 3; ++round) {
      WaitUntilSettled(kernel);
      EXPECT_EQ(CpuDown(kernel, kCpu2, CpuhpState::kOffline), Error::kNone);
      WaitUntilSettled(kernel);
      EXPECT_EQ(CpuUp(kernel, kCpu2, CpuhpState::kOnline), Error::kNone);
    }
  });
  // The lock's own grace period comes before kHotplugBegin: from the lock being asked for, and
  // for the memory node's from the end of the operation before.
  uint32_t syncs = 0;
  std::vector<uint32_t> per_operation;
  bool booted = false;
  for (const abi::TraceRecord& record : Timeline(machine)) {
    if (record.event == TraceEvent::kSmpbootEnd) booted = true;
    if (!booted) continue;
    if (record.event == TraceEvent::kSyncBegin) ++syncs;
    if (record.event != TraceEvent::kHotplugEnd) continue;
    per_operation.push_back(syncs);
    syncs = 0;
  }
  return per_operation;
}

// Reference: one CPU down 2, up by sysfs 2, the first of each the lock's. pseries: one more each.
TEST(Hotplug, GracePeriodsOfOneOperation) {
  for (const abi::HotplugSteps steps : {abi::HotplugSteps::kX86, abi::HotplugSteps::kPseries}) {
    KernelOptions options;
    options.cpus = 4;
    options.kernel.hotplug_steps = steps;
    const uint32_t waits = steps == abi::HotplugSteps::kX86 ? 2 : 3;
    EXPECT_EQ(WaitsOfOperations(options), std::vector<uint32_t>(6, waits));
  }
}

// One more where the CPU is all of its node, none where the node has another.
TEST(Hotplug, ANodeThatComesOrGoesWaitsForAGracePeriod) {
  KernelOptions options;
  options.cpus = 3;
  options.cpus_per_node = 2;
  EXPECT_EQ(WaitsOfOperations(options), std::vector<uint32_t>(6, 3));
  options.cpus = 4;
  EXPECT_EQ(WaitsOfOperations(options), std::vector<uint32_t>(6, 2));
}

// Every offline waits for that CPU's own "dead": after it nothing of the CPU happens, and its own
// last word comes before kDead of the control CPU.
TEST(Hotplug, G11OfflineAndOnlineAThousandTimes) {
  KernelOptions options;
  options.cpus = 3;
  options.ring_records = 1 << 19;
  options.time_limit_ns = 3'600'000'000'000;
  KernelMachine machine(options);
  machine.Run([](Kernel& kernel) {
    for (int round = 0; round < 1000; ++round) {
      EXPECT_EQ(CpuDown(kernel, kCpu2, CpuhpState::kOffline), Error::kNone);
      EXPECT_EQ(kernel.slots[2].sync_state, static_cast<uint32_t>(abi::SyncState::kDead));
      EXPECT_EQ(CpuUp(kernel, kCpu2, CpuhpState::kOnline), Error::kNone);
    }
  });
  std::vector<uint64_t> own;
  for (const abi::TraceRecord& record : machine.Trace(2)) {
    if (record.event == TraceEvent::kParked) own.push_back(record.tsc);
  }
  std::vector<uint64_t> seen;
  for (const abi::TraceRecord& record : Timeline(machine)) {
    if (record.event == TraceEvent::kDead) seen.push_back(record.tsc);
  }
  ASSERT_EQ(own.size(), 1000u);
  ASSERT_EQ(seen.size(), 1000u);
  for (size_t i = 0; i < own.size(); ++i) {
    EXPECT_LT(own[i], seen[i]);
    if (i + 1 < own.size()) {
      EXPECT_LT(seen[i], own[i + 1]);
    }
  }
}

struct Callback {
  rcu::Head head;
  platform::Atomic<uint32_t> runs{0};
};

// 1,000 callbacks on CPU 2, which then goes; another CPU waits for all of them meanwhile.
TEST(Hotplug, G9CallbacksOfADeadCpuRunOnceBeforeTheBarrierReturns) {
  struct Shared {
    Kernel* kernel = nullptr;
    Callback* callbacks = nullptr;
    Completion queued, checked;
  };
  constexpr uint32_t kCount = 1000;
  KernelOptions options;
  options.cpus = 4;
  KernelMachine machine(options);
  machine.Run([](Kernel& kernel) {
    auto& shared = *AllocateArray<Shared>(kernel, 1);
    shared.kernel = &kernel;
    shared.callbacks = AllocateArray<Callback>(kernel, kCount);
    SpawnThread(kernel, {.name = "caller",
                         .function =
                             [](void* argument) {
                               auto& s = *static_cast<Shared*>(argument);
                               EXPECT_TRUE(SetAffinity(*CurrentThread(), 2));
                               for (uint32_t i = 0; i < kCount; ++i) {
                                 rcu::Call(*s.kernel, s.callbacks[i].head, [](rcu::Head& head) {
                                   reinterpret_cast<Callback&>(head).runs.FetchAdd(
                                       1, std::memory_order_relaxed);
                                 });
                               }
                               s.queued.Complete(*s.kernel);
                               EXPECT_TRUE(SetAffinity(*CurrentThread(), 3));
                               rcu::Barrier(*s.kernel);
                               for (uint32_t i = 0; i < kCount; ++i) {
                                 EXPECT_EQ(s.callbacks[i].runs.Load(std::memory_order_relaxed), 1u);
                               }
                               s.checked.Complete(*s.kernel);
                             },
                         .argument = &shared});
    shared.queued.Wait();
    EXPECT_EQ(CpuDown(kernel, kCpu2, CpuhpState::kOffline), Error::kNone);
    shared.checked.Wait();
    for (uint32_t i = 0; i < kCount; ++i) {
      EXPECT_EQ(shared.callbacks[i].runs.Load(std::memory_order_relaxed), 1u);
    }
  });
}

// CPU 3 of 8 does not come up: the others are served, whatever their numbers.
TEST(Hotplug, G5AHoleAmongTheCpus) {
  KernelOptions options;
  options.cpus = 8;
  options.strategy = sequence::StrategyId::kSerial;
  options.fault = {.kind = abi::Fault::kFailStep, .cpu = 3, .value = 58};
  KernelMachine machine(options);
  machine.Run([](Kernel& kernel) {
    EXPECT_FALSE(CpuOnline(kernel, CpuNumber(3)));
    auto& calls = *AllocateArray<Callback>(kernel, 8);
    auto* callbacks = AllocateArray<Callback>(kernel, 8);
    for (uint32_t cpu = 0; cpu < 8; ++cpu) {
      const bool served = CallFunctionSingle(
          kernel, CpuNumber(cpu),
          [](void* argument) {
            static_cast<Callback*>(argument)->runs.FetchAdd(1, std::memory_order_relaxed);
          },
          &calls, /*wait=*/true);
      EXPECT_EQ(served, cpu != 3) << cpu;
      rcu::Call(kernel, callbacks[cpu].head, [](rcu::Head& head) {
        reinterpret_cast<Callback&>(head).runs.FetchAdd(1, std::memory_order_relaxed);
      });
    }
    EXPECT_EQ(calls.runs.Load(std::memory_order_relaxed), 7u);
    rcu::Synchronize(kernel);
    rcu::SynchronizeExpedited(kernel);
    rcu::Barrier(kernel);
    for (uint32_t cpu = 0; cpu < 8; ++cpu) {
      EXPECT_EQ(callbacks[cpu].runs.Load(std::memory_order_relaxed), 1u);
    }
  });
}

// A reader keeps the set of CPUs still, a writer waits for it, and readers come again afterwards.
TEST(Hotplug, ReadersAndWritersOfTheCpuSet) {
  struct Shared {
    Kernel* kernel = nullptr;
    platform::Atomic<uint32_t> readers{0};
    platform::Atomic<uint32_t> left{0};
  };
  KernelOptions options;
  options.cpus = 4;
  ForSeeds(40, options, [](Kernel& kernel) {
    auto& shared = *AllocateArray<Shared>(kernel, 1);
    shared.kernel = &kernel;
    constexpr uint32_t kReaders = 3;
    shared.left.Store(kReaders, std::memory_order_relaxed);
    for (uint32_t i = 0; i < kReaders; ++i) {
      SpawnThread(kernel, {.name = "reader/%",
                           .index = i,
                           .function =
                               [](void* argument) {
                                 auto& s = *static_cast<Shared*>(argument);
                                 for (int round = 0; round < 20; ++round) {
                                   CpusReadLock(*s.kernel);
                                   s.readers.FetchAdd(1, std::memory_order_relaxed);
                                   SleepUs(100);
                                   s.readers.FetchAdd(~0u, std::memory_order_relaxed);
                                   CpusReadUnlock(*s.kernel);
                                 }
                                 s.left.FetchAdd(~0u, std::memory_order_relaxed);
                               },
                           .argument = &shared});
    }
    for (int round = 0; round < 10; ++round) {
      CpusWriteLock(kernel);
      EXPECT_EQ(shared.readers.Load(std::memory_order_relaxed), 0u);
      SleepUs(50);
      EXPECT_EQ(shared.readers.Load(std::memory_order_relaxed), 0u);
      CpusWriteUnlock(kernel);
      SleepUs(300);
    }
    while (shared.left.Load(std::memory_order_relaxed) != 0) SleepJiffies(1);
  });
}

// A reader loses its CPU in the middle of its section, and the CPU goes: it is waited for all the
// same, until it leaves, and nothing of the dead CPU is.
TEST(Hotplug, G12AReaderWhoseCpuIsGone) {
  struct Shared {
    Kernel* kernel = nullptr;
    platform::Atomic<uint32_t> inside{0};
    platform::Atomic<uint32_t> may_leave{0};
    platform::Atomic<uint32_t> left{0};
    platform::Atomic<uint32_t> waited{0};
    Completion over;
  };
  for (const bool expedited : {false, true}) {
    KernelOptions options;
    options.cpus = 4;
    options.kernel.rcu_flavour = abi::RcuFlavour::kPreemptible;
    KernelMachine machine(options);
    machine.Run([expedited](Kernel& kernel) {
      auto& shared = *AllocateArray<Shared>(kernel, 1);
      shared.kernel = &kernel;
      SpawnThread(kernel, {.name = "reader",
                           .function =
                               [](void* argument) {
                                 auto& s = *static_cast<Shared*>(argument);
                                 EXPECT_TRUE(SetAffinity(*CurrentThread(), 2));
                                 rcu::ReadLock();
                                 s.inside.Store(1, std::memory_order_release);
                                 // The CPU's hotplug thread takes the CPU from it, and sends it
                                 // away.
                                 while (s.may_leave.Load(std::memory_order_acquire) == 0)
                                   platform::DelayUs(50);
                                 s.left.Store(1, std::memory_order_release);
                                 rcu::ReadUnlock();
                               },
                           .argument = &shared});
      while (shared.inside.Load(std::memory_order_acquire) == 0) SleepUs(100);
      if (expedited) rcu::ExpediteGp(kernel);
      SpawnThread(kernel, {.name = "waiter",
                           .function =
                               [](void* argument) {
                                 auto& s = *static_cast<Shared*>(argument);
                                 EXPECT_EQ(CpuDown(*s.kernel, kCpu2, CpuhpState::kOffline),
                                           Error::kNone);
                                 EXPECT_EQ(s.left.Load(std::memory_order_acquire), 1u);
                                 s.waited.Store(1, std::memory_order_release);
                                 rcu::Synchronize(*s.kernel);
                                 s.over.Complete(*s.kernel);
                               },
                           .argument = &shared});
      SleepJiffies(30);
      EXPECT_EQ(shared.waited.Load(std::memory_order_acquire), 0u) << "too early";
      shared.may_leave.Store(1, std::memory_order_release);
      shared.over.Wait();
      if (expedited) rcu::UnexpediteGp(kernel);
      rcu::Synchronize(kernel);
      rcu::SynchronizeExpedited(kernel);
    });
  }
}

// Its timer stands on the CPU that goes: another one takes it over.
TEST(Hotplug, WhoFellAsleepOnACpuThatGoesWakesInTime) {
  KernelOptions options;
  options.cpus = 3;
  KernelMachine machine(options);
  machine.Run([](Kernel& kernel) {
    struct Sleeper {
      Completion asleep;
      Completion awake;
    };
    auto& sleeper = *AllocateArray<Sleeper>(kernel, 1);
    const auto sleep = [](void* argument) {
      auto& self = *static_cast<Sleeper*>(argument);
      Kernel& own = *CurrentThread()->kernel;
      EXPECT_TRUE(SetAffinity(*CurrentThread(), kCpu2.value));
      self.asleep.Complete(own);
      SleepUs(500'000);
      self.awake.Complete(own);
    };
    SpawnThread(kernel, {.name = "sleeper", .function = sleep, .argument = &sleeper});
    sleeper.asleep.Wait();
    SleepJiffies(5);
    EXPECT_EQ(CpuDown(kernel, kCpu2, CpuhpState::kOffline), Error::kNone);
    sleeper.awake.Wait();
  });
}

}  // namespace
}  // namespace sipi
