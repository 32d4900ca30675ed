// Function calls on other CPUs, and stopping them all.
#include "guest/kernel/sched/smp_call.h"

#include "guest/kernel/hotplug/hotplug.h"
#include "guest/kernel/sched/run_queue.h"
#include "guest/kernel/sched/time.h"
#include "tests/kernel/kernel_machine.h"

namespace sipi {
namespace {

struct Calls {
  Completion done;
  platform::Atomic<uint32_t> runs{0};
  platform::Atomic<uint32_t> said_yes{0};
  platform::Atomic<uint32_t> stop{0};
  platform::Atomic<uint32_t> steps[8] = {
      platform::Atomic<uint32_t>(0), platform::Atomic<uint32_t>(0), platform::Atomic<uint32_t>(0),
      platform::Atomic<uint32_t>(0), platform::Atomic<uint32_t>(0), platform::Atomic<uint32_t>(0),
      platform::Atomic<uint32_t>(0), platform::Atomic<uint32_t>(0)};
  uint32_t cpu = ~0u;
  uint32_t stops = 0;
};

Calls& NewCalls(Kernel& kernel) { return *AllocateArray<Calls>(kernel, 1); }

void CountCall(void* argument) {
  auto& calls = *static_cast<Calls*>(argument);
  EXPECT_FALSE(platform::IrqsEnabled());
  calls.cpu = platform::ThisCpu().cpu.value;
  calls.runs.FetchAdd(1, std::memory_order_seq_cst);
}

TEST(SmpCall, RunsOnTheCpuThatWasNamedAndWaits) {
  ForSeeds(40, {.cpus = 4}, [](Kernel& kernel) {
    Calls& calls = NewCalls(kernel);
    for (uint32_t i = 0; i < 8; ++i) {
      EXPECT_TRUE(CallFunctionSingle(kernel, CpuNumber(i % 4), CountCall, &calls, /*wait=*/true));
      EXPECT_EQ(calls.runs.Load(std::memory_order_seq_cst), i + 1);
      EXPECT_EQ(calls.cpu, i % 4);
    }
  });
}

TEST(SmpCall, CallsThatNobodyWaitsForAllRun) {
  ForSeeds(40, {.cpus = 4}, [](Kernel& kernel) {
    Calls& calls = NewCalls(kernel);
    for (uint32_t i = 0; i < 12; ++i) {
      EXPECT_TRUE(
          CallFunctionSingle(kernel, CpuNumber(1 + i % 3), CountCall, &calls, /*wait=*/false));
    }
    EXPECT_TRUE(platform::SpinUntil(
        calls.runs.Ref(), [](uint32_t runs) { return runs == 12; },
        platform::DeadlineInUs(1'000'000)));
  });
}

void CallOften(void* argument) {
  auto& calls = *static_cast<Calls*>(argument);
  Kernel& kernel = *CurrentThread()->kernel;
  for (uint32_t i = 0; i < 20; ++i) {
    const bool yes = CallFunctionSingle(kernel, CpuNumber(1), CountCall, &calls, i % 3 != 0);
    if (yes) calls.said_yes.FetchAdd(1, std::memory_order_seq_cst);
    platform::DelayUs(3);
  }
  calls.done.Complete(kernel);
}

// Goes offline and comes back again and again, as far as calls are concerned.
void ComeAndGo(void* argument) {
  auto& calls = *static_cast<Calls*>(argument);
  Kernel& kernel = *CurrentThread()->kernel;
  while (calls.stop.Load(std::memory_order_acquire) == 0) {
    {
      IrqGuard irq;
      CloseCallQueue(platform::ThisCpu());
      const uint32_t runs = calls.runs.Load(std::memory_order_seq_cst);
      platform::DelayUs(4);
      // Whoever is dead does nothing.
      EXPECT_EQ(calls.runs.Load(std::memory_order_seq_cst), runs);
      OpenCallQueue(platform::ThisCpu());
    }
    SleepUs(7);
  }
  calls.done.Complete(kernel);
}

TEST(SmpCall, ACallToACpuThatGoesOfflineRunsOrSaysNo) {
  ForSeeds(100, {.cpus = 4}, [](Kernel& kernel) {
    Calls& calls = NewCalls(kernel);
    SpawnThread(kernel, {.name = "comer", .function = ComeAndGo, .argument = &calls, .cpu = 1});
    for (const uint32_t cpu : {2u, 3u}) {
      SpawnThread(kernel,
                  {.name = "caller", .function = CallOften, .argument = &calls, .cpu = cpu});
    }
    calls.done.Wait();
    calls.done.Wait();
    calls.stop.Store(1, std::memory_order_release);
    calls.done.Wait();
    SleepUs(300'000);  // longer than any chaos holds an interrupt back
    EXPECT_EQ(calls.runs.Load(std::memory_order_seq_cst),
              calls.said_yes.Load(std::memory_order_seq_cst));
  });
}

void CallUntilStopped(void* argument) {
  auto& calls = *static_cast<Calls*>(argument);
  Kernel& kernel = *CurrentThread()->kernel;
  while (calls.stop.Load(std::memory_order_acquire) == 0) {
    (void)CallFunctionSingle(kernel, CpuNumber(1), CountCall, &calls, /*wait=*/false);
    SleepUs(5);
  }
  calls.done.Complete(kernel);
}

// However long a caller stands still between its entry, which the CPU that goes runs, and its
// interrupt.
TEST(SmpCall, NoInterruptIsSentToADeadCpu) {
  KernelOptions options{.cpus = 4};
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    options.seed = seed;
    options.chaos.on = true;
    options.chaos.schedule = sim::Schedule::kRandom;
    options.chaos.rcu_delay = sim::Rate::kWild;
    options.chaos.calls_need_life = true;
    KernelMachine machine(options);
    machine.Run([](Kernel& kernel) {
      Calls& calls = NewCalls(kernel);
      for (const uint32_t cpu : {2u, 3u}) {
        SpawnThread(
            kernel,
            {.name = "caller", .function = CallUntilStopped, .argument = &calls, .cpu = cpu});
      }
      for (uint32_t round = 0; round < 4; ++round) {
        EXPECT_EQ(CpuDown(kernel, CpuNumber(1), abi::CpuhpState::kOffline), Error::kNone);
        EXPECT_EQ(CpuUp(kernel, CpuNumber(1), abi::CpuhpState::kOnline), Error::kNone);
      }
      calls.stop.Store(1, std::memory_order_release);
      calls.done.Wait();
      calls.done.Wait();
    });
    if (HasFailure()) return;
  }
}

void Step(void* argument) {
  auto& calls = *static_cast<Calls*>(argument);
  const uint32_t cpu = platform::ThisCpu().cpu.value;
  while (calls.stop.Load(std::memory_order_acquire) == 0) {
    calls.steps[cpu].FetchAdd(1, std::memory_order_relaxed);
    platform::DelayUs(1);
    CondResched();
  }
  calls.done.Complete(*CurrentThread()->kernel);
}

void LookWhetherAllStand(void* argument) {
  auto& calls = *static_cast<Calls*>(argument);
  Kernel& kernel = *CurrentThread()->kernel;
  EXPECT_FALSE(platform::IrqsEnabled());
  calls.cpu = platform::ThisCpu().cpu.value;
  ++calls.stops;
  uint32_t before[8];
  const uint32_t cpus = kernel.params->cpu_count;
  for (uint32_t i = 0; i < cpus; ++i) before[i] = calls.steps[i].Load(std::memory_order_relaxed);
  platform::DelayUs(50);
  for (uint32_t i = 0; i < cpus; ++i) {
    EXPECT_EQ(before[i], calls.steps[i].Load(std::memory_order_relaxed));
  }
}

TEST(StopMachine, NobodyMovesWhileTheFunctionRuns) {
  ForSeeds(40, {.cpus = 4}, [](Kernel& kernel) {
    Calls& calls = NewCalls(kernel);
    for (uint32_t cpu = 0; cpu < 4; ++cpu) {
      SpawnThread(kernel, {.name = "step", .function = Step, .argument = &calls, .cpu = cpu});
    }
    for (uint32_t cpu = 0; cpu < 4; ++cpu) {
      StopMachine(kernel, CpuNumber(cpu), LookWhetherAllStand, &calls);
      EXPECT_EQ(calls.stops, cpu + 1);
      EXPECT_EQ(calls.cpu, cpu);
    }
    calls.stop.Store(1, std::memory_order_release);
    for (uint32_t i = 0; i < 4; ++i) calls.done.Wait();
  });
}

void NoteStopper(void* argument) {
  auto& calls = *static_cast<Calls*>(argument);
  EXPECT_EQ(CurrentThread()->priority, Priority::kStop);
  EXPECT_TRUE(platform::IrqsEnabled());
  calls.cpu = platform::ThisCpu().cpu.value;
  ++calls.stops;
}

TEST(StopMachine, StopOneCpuRunsOnThatCpusStopper) {
  ForSeeds(20, {.cpus = 3}, [](Kernel& kernel) {
    Calls& calls = NewCalls(kernel);
    for (uint32_t i = 0; i < 6; ++i) {
      StopOneCpu(kernel, CpuNumber(i % 3), NoteStopper, &calls);
      EXPECT_EQ(calls.stops, i + 1);
      EXPECT_EQ(calls.cpu, i % 3);
    }
  });
}

}  // namespace
}  // namespace sipi
