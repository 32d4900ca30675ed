// RCU while CPUs go and come: readers, callbacks and barriers (cases G9, G12 and the second half of
// G5).
#include "guest/kernel/hotplug/hotplug.h"
#include "guest/kernel/sched/smp_call.h"
#include "guest/scenario/plugged_step.h"
#include "tests/kernel/rcu_held.h"

namespace sipi {
namespace {

using abi::CpuhpState;

void Down(Kernel& kernel, uint32_t cpu) {
  EXPECT_EQ(CpuDown(kernel, CpuNumber(cpu), CpuhpState::kOffline), Error::kNone) << cpu;
}
void Up(Kernel& kernel, uint32_t cpu) {
  EXPECT_EQ(CpuUp(kernel, CpuNumber(cpu), CpuhpState::kOnline), Error::kNone) << cpu;
}

struct Flood {
  static constexpr uint32_t kMost = 1000;
  platform::Atomic<uint32_t> run{0};
  platform::Atomic<uint32_t> queued{0};
  platform::Atomic<uint32_t> step_done{0};
  uint32_t barrier_after_us = 0;
  Completion last_run;  // of kMost
  Completion barrier;
};

struct Wrapped {
  rcu::Head head;  // first
  Flood* flood = nullptr;
  uint32_t runs = 0;
};
struct FloodOf : Flood {
  Wrapped wrapped[kMost];
};

void CountIt(rcu::Head& head) {
  auto& wrapped = reinterpret_cast<Wrapped&>(head);
  ++wrapped.runs;
  const uint32_t before = wrapped.flood->run.FetchAdd(1, std::memory_order_seq_cst);
  if (before + 1 == Flood::kMost) wrapped.flood->last_run.Complete(*CurrentThread()->kernel);
}

// In CPU 2's STARTING section on its way down: from here on it runs none of them itself.
Error QueueAll(PerCpu& self, CpuNumber) {
  auto& flood = OwnerOfPlugged<FloodOf>(self);
  for (Wrapped& each : flood.wrapped) {
    each.flood = &flood;
    rcu::Call(*self.kernel, each.head, CountIt);
  }
  flood.queued.Store(1, std::memory_order_seq_cst);
  return Error::kNone;
}

// On the control CPU, when CPU 2 is dead: waits for the last of them.
Error AwaitLast(PerCpu& self, CpuNumber cpu) {
  auto& flood = OwnerOfPlugged<FloodOf>(self);
  EXPECT_EQ(rcu::DataOf(*self.kernel, cpu).callbacks.length(), 0u);
  flood.last_run.Wait();
  EXPECT_EQ(flood.run.Load(std::memory_order_seq_cst), Flood::kMost);
  flood.step_done.Store(1, std::memory_order_seq_cst);
  return Error::kNone;
}

void RunBarrier(void* argument) {
  auto& flood = *static_cast<FloodOf*>(argument);
  Kernel& kernel = *CurrentThread()->kernel;
  const auto set = [](uint32_t queued) { return queued != 0; };
  // What takes the CPU down waits for grace periods, and they for this CPU.
  while (!platform::SpinUntil(flood.queued.Ref(), set, platform::DeadlineInUs(100))) CondResched();
  platform::DelayUs(flood.barrier_after_us);
  rcu::Barrier(kernel);
  EXPECT_EQ(flood.run.Load(std::memory_order_seq_cst), Flood::kMost);
  flood.barrier.Complete(kernel);
}

// Plugs QueueAll and AwaitLast in.
void PlugFloodIn(Kernel& kernel, FloodOf& flood) {
  constexpr auto kDying = static_cast<CpuhpState>(89);  // function calls do not come any more
  constexpr auto kDead = static_cast<CpuhpState>(20);   // RCU is done with the CPU
  PlugStepIn(kernel, {kDying, Section::kStarting, false, nullptr, QueueAll}, &flood);
  PlugStepIn(kernel, {kDead, Section::kPrepare, true, nullptr, AwaitLast}, &flood);
}

// G9: a thousand callbacks on a CPU that goes, all of them moved; a later step of its way down that
// waits for one; and a barrier on another CPU that begins before they are moved, or after.
TEST(RcuHotplug, CallbacksOfACpuThatGoesRunOnceAndTheBarrierWaits) {
  for (const RcuMode& mode : kRcuModes) {
    SCOPED_TRACE(mode.name);
    KernelOptions options = RcuOptions(4, mode);
    for (uint64_t seed = 1; seed <= 16 && !HasFailure(); ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      options.seed = seed;
      options.chaos = ChaosOf(seed);
      KernelMachine machine(options);
      machine.Run([seed](Kernel& kernel) {
        auto& flood = *AllocateArray<FloodOf>(kernel, 1);
        flood.barrier_after_us = static_cast<uint32_t>(seed % 4 * seed);
        PlugFloodIn(kernel, flood);
        SpawnThread(kernel,
                    {.name = "barrier", .function = RunBarrier, .argument = &flood, .cpu = 1});
        Down(kernel, 2);
        EXPECT_EQ(flood.step_done.Load(std::memory_order_seq_cst), 1u);
        flood.barrier.Wait();
        for (const Wrapped& each : flood.wrapped) ASSERT_EQ(each.runs, 1u);
      });
      EXPECT_EQ(machine.CountOf(abi::TraceEvent::kCallbacksMigrated), 1u);
    }
  }
}

struct Outliving {
  Held held;  // first
  Completion passed_event;
  platform::Atomic<uint32_t> passed{0};
};
void Synchronizing(void* argument) {
  auto& outliving = *static_cast<Outliving*>(argument);
  Kernel& kernel = *CurrentThread()->kernel;
  rcu::SynchronizeNormal(rcu::StateOf(kernel));
  outliving.passed.Store(1, std::memory_order_seq_cst);
  outliving.passed_event.Complete(kernel);
}

// G12: a reader that lost its CPU in the middle; the CPU goes idle, then offline. The last CPU of
// its leaf too, with leaves of two. The grace period waits for the reader and for nothing else.
// (The way down waits for grace periods itself: expedited ones here, which an older reader would
// hold up as well, so it runs on a thread of its own.)
TEST(RcuHotplug, AReaderOutlivesItsCpu) {
  KernelOptions options = RcuOptions(6, kRcuModes[0]);
  options.kernel.rcu_fanout = 2;
  options.kernel.rcu_fanout_leaf = 2;
  options.kernel.hz = 100;
  ForSeeds(10, options, [](Kernel& kernel) {
    auto& outliving = *AllocateArray<Outliving>(kernel, 1);
    Held& held = outliving.held;
    const auto down = [](void* argument) {
      Kernel& own = *CurrentThread()->kernel;
      Down(own, 3);
      Down(own, 2);
      static_cast<Held*>(argument)->out.Complete(own);
    };
    SpawnThread(kernel, {.name = "holder", .function = HoldingReader, .argument = &held, .cpu = 2});
    held.in.Wait();
    SpawnThread(kernel, {.name = "down", .function = down, .argument = &held, .cpu = 0});
    SpawnThread(kernel,
                {.name = "waiter", .function = Synchronizing, .argument = &outliving, .cpu = 1});
    SleepJiffies(40);
    EXPECT_EQ(outliving.passed.Load(std::memory_order_seq_cst), 0u);
    held.go.Complete(kernel);
    outliving.passed_event.Wait();
    EXPECT_EQ(held.inside.Load(std::memory_order_seq_cst), 0u);
    held.out.Wait();
    held.out.Wait();
    // With the leaf empty, and after it has filled again, grace periods end.
    rcu::SynchronizeNormal(rcu::StateOf(kernel));
    Up(kernel, 2);
    rcu::SynchronizeNormal(rcu::StateOf(kernel));
    EXPECT_NE(rcu::DataOf(kernel, CpuNumber(2)).leaf->qsmaskinit, 0u);
  });
}

// A reader that was switched out on CPU 2 after the way down had waited for readers: it is put on
// the leaf's list while CPU 2 dies.
struct LeftBehind {
  platform::Atomic<uint32_t> dying{0};
  platform::Atomic<uint32_t> queued{0};
  Completion go;
  Completion out;
};

void AwaitSet(platform::AtomicRef<uint32_t> word) {
  const auto set = [](uint32_t value) { return value != 0; };
  while (!platform::SpinUntil(word, set, platform::DeadlineInUs(100))) CondResched();
}

void ReadAsIfOnCpu2(void* argument) {
  auto& left = *static_cast<LeftBehind*>(argument);
  Thread& self = *CurrentThread();
  AwaitSet(left.dying.Ref());
  {
    IrqGuard irq;
    rcu::ReadLock();
    rcu::QueueBlockedReader(self.kernel->percpu(CpuNumber(2)), self);
  }
  left.queued.Store(1, std::memory_order_seq_cst);
  left.go.Wait();
  rcu::ReadUnlock();
  left.out.Complete(*self.kernel);
}

Error DieWithReader(PerCpu& self, CpuNumber cpu) {
  if (cpu.value != 2) return Error::kNone;
  auto& left = OwnerOfPlugged<LeftBehind>(self);
  left.dying.Store(1, std::memory_order_seq_cst);
  const auto set = [](uint32_t value) { return value != 0; };
  EXPECT_TRUE(platform::SpinUntil(left.queued.Ref(), set, platform::NoDeadline()));
  return Error::kNone;
}

// The initialisation of a grace period finds a reader on a leaf without CPUs, and lets it hold that
// leaf's place in the tree; the reader goes before the leaf's own turn comes. Nobody but the
// initialisation can report for the leaf then. The kthread is kept between the two by the lock of
// the last leaf.
TEST(RcuHotplug, AReaderLeavesAnEmptyLeafWhileAGracePeriodBegins) {
  KernelOptions options = RcuOptions(6, kRcuModes[0]);
  options.kernel.rcu_fanout = 2;
  options.kernel.rcu_fanout_leaf = 2;
  KernelMachine machine(options);
  machine.Run([](Kernel& kernel) {
    rcu::State& state = rcu::StateOf(kernel);
    rcu::Node& empty = *rcu::DataOf(kernel, CpuNumber(2)).leaf;
    rcu::Node& last = *rcu::DataOf(kernel, CpuNumber(4)).leaf;
    auto& left = *AllocateArray<LeftBehind>(kernel, 1);
    PlugStepIn(kernel,
               {static_cast<CpuhpState>(89), Section::kStarting, false, nullptr, DieWithReader},
               &left);
    Down(kernel, 3);
    SleepJiffies(100);  // nobody wants a grace period any more
    EXPECT_TRUE(SetAffinity(*state.gp_thread, 4));
    const auto down = [](void*) { Down(*CurrentThread()->kernel, 2); };
    SpawnThread(kernel,
                {.name = "reader", .function = ReadAsIfOnCpu2, .argument = &left, .cpu = 1});
    SpawnThread(kernel, {.name = "down", .function = down, .cpu = 1});
    AwaitSet(left.queued.Ref());
    {
      IrqSpinGuard guard(kernel, last.ofl_lock);
      while (empty.qsmaskinitnext != 0 || rcu::GpInProgress(state)) platform::DelayUs(10);
      (void)rcu::RequestGp(state);
      while (!empty.wait_blkd_tasks) platform::DelayUs(10);
      left.go.Complete(kernel);
      while (empty.blocked_first != nullptr) platform::DelayUs(10);
    }
    left.out.Wait();
    rcu::SynchronizeNormal(state);
    EXPECT_EQ(empty.parent->qsmaskinit & empty.grpmask, 0u);
    Up(kernel, 2);
    rcu::SynchronizeNormal(state);
    EXPECT_EQ(empty.parent->qsmaskinit & empty.grpmask, empty.grpmask);
  });
}

// The second half of G5: a CPU is missing in the middle; the others are served.
TEST(RcuHotplug, WithACpuMissingTheOthersAreServed) {
  ForSeeds(6, RcuOptions(8, kRcuModes[0]), [](Kernel& kernel) {
    Down(kernel, 3);
    FloodOf* floods = AllocateArray<FloodOf>(kernel, 8);
    for (uint32_t cpu = 0; cpu < 8; ++cpu) {
      if (cpu == 3) continue;
      const auto queue = [](void* argument) {
        auto& flood = *static_cast<FloodOf*>(argument);
        flood.wrapped[0].flood = &flood;
        rcu::Call(*CurrentThread()->kernel, flood.wrapped[0].head, CountIt);
      };
      EXPECT_TRUE(CallFunctionSingle(kernel, CpuNumber(cpu), queue, &floods[cpu], true));
    }
    rcu::SynchronizeNormal(rcu::StateOf(kernel));
    rcu::Barrier(kernel);
    for (uint32_t cpu = 0; cpu < 8; ++cpu)
      EXPECT_EQ(floods[cpu].run.Load(std::memory_order_seq_cst), cpu == 3 ? 0u : 1u) << cpu;
  });
}

// Readers, updates, callbacks and barriers while CPUs go off and on.
struct Torture {
  static constexpr uint32_t kElements = 16;
  platform::Atomic<uint32_t> current{0};
  uint32_t poisoned[kElements] = {};  // accessed atomically
  platform::Atomic<uint32_t> stop{0};
  platform::Atomic<uint32_t> running{0};
  platform::Atomic<uint32_t> too_short{0};
  Completion done;
  FloodOf flood;

  platform::AtomicRef<uint32_t> Poisoned(uint32_t element) {
    return platform::AtomicRef<uint32_t>(poisoned[element]);
  }
};
void Reading(void* argument) {
  auto& torture = *static_cast<Torture*>(argument);
  while (torture.stop.Load(std::memory_order_acquire) == 0) {
    rcu::ReadLock();
    const uint32_t element = torture.current.Load(std::memory_order_acquire);
    for (int i = 0; i < 3; ++i) {
      platform::DelayUs(11);
      if (torture.Poisoned(element).Load(std::memory_order_relaxed) != 0)
        torture.too_short.FetchAdd(1, std::memory_order_relaxed);
    }
    rcu::ReadUnlock();
    SleepUs(150);
  }
  if (torture.running.FetchAdd(~0u, std::memory_order_acq_rel) == 1)
    torture.done.Complete(*CurrentThread()->kernel);
}
void Updating(void* argument) {
  auto& torture = *static_cast<Torture*>(argument);
  Kernel& kernel = *CurrentThread()->kernel;
  uint32_t queued = 0;
  while (torture.stop.Load(std::memory_order_acquire) == 0) {
    const uint32_t old = torture.current.Load(std::memory_order_relaxed);
    const uint32_t next = (old + 1) % Torture::kElements;
    torture.Poisoned(next).Store(0, std::memory_order_relaxed);
    torture.current.Store(next, std::memory_order_release);
    rcu::SynchronizeNormal(rcu::StateOf(kernel));
    torture.Poisoned(old).Store(1, std::memory_order_seq_cst);
    for (uint32_t i = 0; i < 5 && queued < Flood::kMost; ++i) {
      Wrapped& each = torture.flood.wrapped[queued++];
      each.flood = &torture.flood;
      rcu::Call(kernel, each.head, CountIt);
    }
    if (next % 3 == 0) {
      rcu::Barrier(kernel);
      EXPECT_EQ(torture.flood.run.Load(std::memory_order_seq_cst), queued);
    }
  }
  rcu::Barrier(kernel);
  EXPECT_EQ(torture.flood.run.Load(std::memory_order_seq_cst), queued);
  for (uint32_t i = 0; i < queued; ++i) EXPECT_EQ(torture.flood.wrapped[i].runs, 1u);
  if (torture.running.FetchAdd(~0u, std::memory_order_acq_rel) == 1) torture.done.Complete(kernel);
}

TEST(RcuHotplug, ReadersUpdatesAndCallbacksWhileCpusGoAndCome) {
  for (const RcuMode& mode : kRcuModes) {
    SCOPED_TRACE(mode.name);
    KernelOptions options = RcuOptions(5, mode);
    options.kernel.rcu_fanout = 2;
    options.kernel.rcu_fanout_leaf = 2;
    options.kernel.hz = 100;
    const auto body = [](Kernel& kernel) {
      auto& torture = *AllocateArray<Torture>(kernel, 1);
      torture.running.Store(6, std::memory_order_seq_cst);
      for (uint32_t i = 0; i < 5; ++i) {
        SpawnThread(kernel,
                    {.name = "reader/%", .index = i, .function = Reading, .argument = &torture});
      }
      SpawnThread(kernel, {.name = "updater", .function = Updating, .argument = &torture});
      for (uint32_t round = 0; round < 3; ++round) {
        for (uint32_t cpu = 1; cpu < 5; ++cpu) Down(kernel, cpu);
        for (uint32_t cpu = 1; cpu < 5; ++cpu) Up(kernel, cpu);
      }
      torture.stop.Store(1, std::memory_order_seq_cst);
      torture.done.Wait();
      EXPECT_EQ(torture.too_short.Load(std::memory_order_relaxed), 0u);
    };
    ForSeeds(12, options, body);
  }
}

}  // namespace
}  // namespace sipi
