// Callbacks on simulated CPUs: each runs once, after a grace period; a barrier comes behind them.
#include "guest/kernel/rcu/read_side.h"
#include "guest/kernel/rcu/state.h"
#include "guest/kernel/sched/smp_call.h"
#include "guest/kernel/sched/time.h"
#include "tests/kernel/rcu_held.h"

namespace sipi {
namespace {

// Callbacks that count.
struct Batch;
struct Element {
  rcu::Head head;  // first
  Batch* batch = nullptr;
  uint32_t runs = 0;
  uint64_t queued_at_gp = 0;  // gp_seq when it was queued
  uint64_t queued_at_exp = 0;
};
struct Batch {
  static constexpr uint32_t kMost = 4000;
  Element elements[kMost];
  platform::Atomic<uint32_t> run{0};
  platform::Atomic<uint32_t> too_early{0};
};

void CountIt(rcu::Head& head) {
  auto& element = reinterpret_cast<Element&>(head);
  Kernel& kernel = *CurrentThread()->kernel;
  rcu::State& state = rcu::StateOf(kernel);
  ++element.runs;
  const bool normal = rcu::SeqDone(state.gp_seq.Load(std::memory_order_seq_cst),
                                   rcu::SeqSnap(element.queued_at_gp));
  // A callback may run once its leaf has seen the end, which is just before gp_seq shows it.
  const bool nearly = rcu::SeqDone(rcu::SeqEnded(state.gp_seq.Load(std::memory_order_seq_cst)),
                                   rcu::SeqSnap(element.queued_at_gp));
  const bool expedited = rcu::SeqDone(state.expedited_sequence.Load(std::memory_order_seq_cst),
                                      rcu::SeqSnap(element.queued_at_exp));
  if (!normal && !nearly && !expedited)
    element.batch->too_early.FetchAdd(1, std::memory_order_relaxed);
  element.batch->run.FetchAdd(1, std::memory_order_seq_cst);
}

void Queue(Kernel& kernel, Batch& batch, uint32_t i) {
  Element& element = batch.elements[i];
  rcu::State& state = rcu::StateOf(kernel);
  element.batch = &batch;
  element.queued_at_gp = state.gp_seq.Load(std::memory_order_seq_cst);
  element.queued_at_exp = state.expedited_sequence.Load(std::memory_order_seq_cst);
  rcu::Call(kernel, element.head, CountIt);
}

void ExpectEachOnce(Batch& batch, uint32_t count) {
  EXPECT_EQ(batch.run.Load(std::memory_order_seq_cst), count);
  EXPECT_EQ(batch.too_early.Load(std::memory_order_relaxed), 0u);
  for (uint32_t i = 0; i < count; ++i) ASSERT_EQ(batch.elements[i].runs, 1u) << i;
}

struct Producer {
  Batch* batch = nullptr;
  uint32_t first = 0;
  uint32_t count = 0;
  Completion done;
};
void Produce(void* argument) {
  auto& producer = *static_cast<Producer*>(argument);
  Kernel& kernel = *CurrentThread()->kernel;
  for (uint32_t i = 0; i < producer.count; ++i) {
    Queue(kernel, *producer.batch, producer.first + i);
    CondResched();
  }
  producer.done.Complete(kernel);
}

class CallbackFlavours : public testing::TestWithParam<RcuMode> {};

TEST_P(CallbackFlavours, BarrierReturnsAfterWhatWasQueuedOnEveryCpu) {
  ForSeeds(20, RcuOptions(4, GetParam()), [](Kernel& kernel) {
    auto& batch = *AllocateArray<Batch>(kernel, 1);
    constexpr uint32_t kEach = 30;
    Producer* producers = AllocateArray<Producer>(kernel, 4);
    for (uint32_t i = 0; i < 4; ++i) {
      producers[i].batch = &batch;
      producers[i].first = i * kEach;
      producers[i].count = kEach;
      SpawnThread(kernel, {.name = "producer/%",
                           .index = i,
                           .function = Produce,
                           .argument = &producers[i],
                           .cpu = i});
    }
    for (uint32_t i = 0; i < 4; ++i) producers[i].done.Wait();
    rcu::Barrier(kernel);
    ExpectEachOnce(batch, 4 * kEach);
  });
}

INSTANTIATE_TEST_SUITE_P(, CallbackFlavours, testing::ValuesIn(kRcuModes), NameOfMode);

TEST(Callbacks, ManyOnOneCpuAllRunInManyGoes) {
  KernelMachine machine(RcuOptions(2, kRcuModes[0]));
  machine.Run([](Kernel& kernel) {
    auto& batch = *AllocateArray<Batch>(kernel, 1);
    for (uint32_t i = 0; i < Batch::kMost; ++i) Queue(kernel, batch, i);
    rcu::Barrier(kernel);
    ExpectEachOnce(batch, Batch::kMost);
    for (uint32_t cpu = 0; cpu < 2; ++cpu)
      EXPECT_EQ(rcu::DataOf(kernel, CpuNumber(cpu)).callbacks.length(), 0u);
  });
  // In goes, so that whoever was interrupted gets on.
  EXPECT_GT(machine.CountOf(abi::TraceEvent::kCallbacks), 20u);
}

struct Slow : rcu::Head {
  platform::Atomic<uint32_t> stage{0};  // 1: it runs, 2: it has run
};

void RunSlowly(rcu::Head& head) {
  auto& slow = static_cast<Slow&>(head);
  slow.stage.Store(1, std::memory_order_seq_cst);
  platform::DelayUs(30'000);
  slow.stage.Store(2, std::memory_order_seq_cst);
}

// It is off the list by then, and the list may look empty.
TEST(Callbacks, ABarrierWaitsForOneThatRuns) {
  ForSeeds(10, RcuOptions(3, kRcuModes[0]), [](Kernel& kernel) {
    auto& slow = *AllocateArray<Slow>(kernel, 1);
    const auto queue = [](void* argument) {
      rcu::Call(*CurrentThread()->kernel, *static_cast<Slow*>(argument), RunSlowly);
    };
    SpawnThread(kernel, {.name = "queue", .function = queue, .argument = &slow, .cpu = 1});
    while (slow.stage.Load(std::memory_order_seq_cst) == 0) SleepUs(100);
    rcu::Barrier(kernel);
    EXPECT_EQ(slow.stage.Load(std::memory_order_seq_cst), 2u);
  });
}

// A grace period runs and cannot end: from 10,001 callbacks on the CPU has a scan made, and runs
// without a limit until it is down to 100 again.
TEST(Callbacks, TooManyHaveAScanMadeAndRunWithoutALimit) {
  KernelOptions options = RcuOptions(2, kRcuModes[0]);
  options.kernel.rcu_normal_wake_from_gp = 1;  // no callback of the waiter's among them
  KernelMachine machine(options);
  machine.Run([](Kernel& kernel) {
    constexpr uint32_t kMany = rcu::kHighMark + 1;
    rcu::State& state = rcu::StateOf(kernel);
    rcu::Data& data = rcu::DataOf(kernel, CpuNumber(0));  // of this thread's CPU
    auto* heads = AllocateArray<rcu::Head>(kernel, kMany);
    Held& held = HoldReader(kernel, 1);
    Completion& normal = StartWaiting(kernel, WaitNormally);
    {
      const IrqGuard irq;
      for (uint32_t i = 0; i < kMany - 1; ++i) rcu::Call(kernel, heads[i], [](rcu::Head&) {});
      EXPECT_EQ(data.batch_limit, rcu::kBatchLimit);
      const uint32_t flags = state.gp_flags.Load(std::memory_order_seq_cst);
      EXPECT_EQ(flags & rcu::kGpFlagFqs, 0u);
      data.fqs_count_snap = state.fqs_count.Load(std::memory_order_seq_cst);
      rcu::Call(kernel, heads[kMany - 1], [](rcu::Head&) {});
      EXPECT_EQ(data.batch_limit, rcu::kBatchLimitMax);
      EXPECT_NE(state.gp_flags.Load(std::memory_order_seq_cst) & rcu::kGpFlagFqs, 0u);
    }
    held.go.Complete(kernel);
    normal.Wait();
    rcu::Barrier(kernel);
    SleepJiffies(2);
    EXPECT_EQ(data.batch_limit, rcu::kBatchLimit);
  });
}

TEST(Callbacks, BarriersThatOverlap) {
  ForSeeds(10, RcuOptions(3, kRcuModes[0]), [](Kernel& kernel) {
    struct Caller {
      Batch batch;
      Completion done;
    };
    Caller* callers = AllocateArray<Caller>(kernel, 3);
    const auto run = [](void* argument) {
      auto& caller = *static_cast<Caller*>(argument);
      Kernel& own = *CurrentThread()->kernel;
      for (uint32_t round = 0; round < 3; ++round) {
        for (uint32_t i = 0; i < 5; ++i) Queue(own, caller.batch, round * 5 + i);
        rcu::Barrier(own);
        EXPECT_EQ(caller.batch.run.Load(std::memory_order_seq_cst), (round + 1) * 5);
      }
      caller.done.Complete(own);
    };
    for (uint32_t i = 0; i < 3; ++i)
      SpawnThread(kernel,
                  {.name = "caller/%", .index = i, .function = run, .argument = &callers[i]});
    for (uint32_t i = 0; i < 3; ++i) callers[i].done.Wait();
  });
}

// Three hundred grace periods: every counter that begins near its wrap goes over it.
TEST(Callbacks, AcrossTheWrapOfEveryCounter) {
  KernelMachine machine(RcuOptions(2, kRcuModes[0]));
  machine.Run([](Kernel& kernel) {
    rcu::State& state = rcu::StateOf(kernel);
    auto& batch = *AllocateArray<Batch>(kernel, 1);
    EXPECT_GT(state.gp_seq.Load(std::memory_order_seq_cst), uint64_t{1} << 63);
    EXPECT_GT(state.barrier_seq.Load(std::memory_order_seq_cst), uint64_t{1} << 63);
    for (uint32_t i = 0; i < 330; ++i) {
      Queue(kernel, batch, i);
      if (i % 3 == 0) rcu::Barrier(kernel);
      rcu::SynchronizeNormal(state);
    }
    rcu::Barrier(kernel);
    ExpectEachOnce(batch, 330);
    EXPECT_LT(state.gp_seq.Load(std::memory_order_seq_cst), uint64_t{1} << 32);
    EXPECT_LT(state.barrier_seq.Load(std::memory_order_seq_cst), uint64_t{1} << 32);
  });
}

// From interrupts too, where a reader was interrupted.
TEST(Callbacks, QueuedInInterruptContext) {
  ForSeeds(10, RcuOptions(3, kRcuModes[0]), [](Kernel& kernel) {
    auto& batch = *AllocateArray<Batch>(kernel, 1);
    struct Call {
      Batch* batch;
      uint32_t i;
    };
    Call* calls = AllocateArray<Call>(kernel, 40);
    for (uint32_t i = 0; i < 40; ++i) {
      calls[i] = {&batch, i};
      rcu::ReadLock();
      const auto queue = [](void* argument) {
        const auto& call = *static_cast<Call*>(argument);
        Queue(*CurrentThread()->kernel, *call.batch, call.i);
      };
      (void)CallFunctionSingle(kernel, CpuNumber(i % 3), queue, &calls[i], false);
      rcu::ReadUnlock();
    }
    SleepJiffies(2);
    rcu::Barrier(kernel);
    ExpectEachOnce(batch, 40);
  });
}

}  // namespace
}  // namespace sipi
