// Jiffies, timers, sleeping, and the tick that is not there.
#include "guest/kernel/sched/run_queue.h"
#include "guest/kernel/sched/time.h"
#include "tests/kernel/kernel_machine.h"

namespace sipi {
namespace {

uint64_t SinceJiffyTicks(Kernel& kernel) {
  const Scheduler& scheduler = *kernel.scheduler;
  return (platform::NowTicks() - scheduler.boot_ticks) % scheduler.ticks_per_jiffy;
}

TEST(SchedTime, SleepingInJiffiesEndsAtTheFirstTickThatIsSoManyWholeOnesAway) {
  for (const uint32_t hz : {100u, 250u, 1000u}) {
    KernelOptions options{.cpus = 2};
    options.kernel.hz = hz;
    KernelMachine machine(options);
    machine.Run([hz](Kernel& kernel) {
      EXPECT_EQ(JiffyNs(kernel), 1'000'000'000 / hz);
      for (const uint64_t jiffies : {0u, 1u, 2u, 7u}) {
        platform::DelayUs(static_cast<uint32_t>(137 * (jiffies + 1)));
        const uint64_t begin = platform::NowNs();
        SleepJiffies(jiffies);
        const uint64_t slept = platform::NowNs() - begin;
        EXPECT_GE(slept, jiffies * JiffyNs(kernel));
        EXPECT_LE(slept, (jiffies + 1) * JiffyNs(kernel) + 20'000);
        EXPECT_LE(SinceJiffyTicks(kernel), platform::TicksOfUs(20));
      }
    });
  }
}

TEST(SchedTime, JiffiesAreTheWholeOnesSinceBoot) {
  KernelMachine machine({.cpus = 1});
  machine.Run([](Kernel& kernel) {
    const uint64_t before = Jiffies(kernel);
    SleepJiffies(1);
    const uint64_t after = Jiffies(kernel);
    EXPECT_EQ(after, before + 2);
    platform::DelayUs(3990);
    EXPECT_EQ(Jiffies(kernel), after);
    platform::DelayUs(20);
    EXPECT_EQ(Jiffies(kernel), after + 1);
  });
}

struct Fired {
  Timer timer;
  uint64_t at_ticks = 0;
  uint32_t order = 0;
  uint32_t cpu = ~0u;
  uint32_t* counter = nullptr;
};

void Note(void* argument) {
  auto& fired = *static_cast<Fired*>(argument);
  fired.at_ticks = platform::NowTicks();
  fired.order = ++*fired.counter;
  fired.cpu = platform::ThisCpu().cpu.value;
  EXPECT_FALSE(platform::IrqsEnabled());
}

TEST(SchedTime, TimersFireInTheOrderOfTheirDeadlinesAndNeverBefore) {
  ForSeeds(40, {.cpus = 2}, [](Kernel& kernel) {
    constexpr uint32_t kTimers = 12;
    auto* const timers = AllocateArray<Fired>(kernel, kTimers);
    auto* const counter = AllocateArray<uint32_t>(kernel, 1);
    const uint64_t now = platform::NowTicks();
    for (uint32_t i = 0; i < kTimers; ++i) {
      timers[i].timer.function = Note;
      timers[i].timer.argument = &timers[i];
      timers[i].counter = counter;
      // 5 shares no factor with 12: all different, in a mixed order.
      StartTimer(timers[i].timer, {now + platform::TicksOfUs(5000 + 100 * (i * 5 % kTimers))});
    }
    EXPECT_TRUE(StopTimer(kernel, timers[7].timer));
    EXPECT_FALSE(StopTimer(kernel, timers[7].timer));
    SleepUs(20'000);
    EXPECT_EQ(*counter, kTimers - 1);
    EXPECT_EQ(timers[7].order, 0u);
    for (uint32_t i = 0; i < kTimers; ++i) {
      if (i == 7) continue;
      EXPECT_GE(timers[i].at_ticks, timers[i].timer.deadline_ticks);
      EXPECT_EQ(timers[i].cpu, 0u);
      for (uint32_t j = 0; j < kTimers; ++j) {
        const bool before = timers[j].timer.deadline_ticks < timers[i].timer.deadline_ticks;
        if (j != 7 && before) {
          EXPECT_LT(timers[j].order, timers[i].order);
        }
      }
    }
    EXPECT_FALSE(StopTimer(kernel, timers[0].timer));
  });
}

void StartNotes(void* argument) {
  auto* const timers = static_cast<Fired*>(argument);
  for (uint32_t i = 0; i < 3; ++i) {
    StartTimer(timers[i].timer, platform::DeadlineInUs(3000 + 500 * i));
  }
}

TEST(SchedTime, TimersOfADeadCpuFireWhereTheyWereTaken) {
  KernelMachine machine({.cpus = 2});
  machine.Run([](Kernel& kernel) {
    auto* const timers = AllocateArray<Fired>(kernel, 3);
    auto* const counter = AllocateArray<uint32_t>(kernel, 1);
    for (uint32_t i = 0; i < 3; ++i) {
      timers[i].timer.function = Note;
      timers[i].timer.argument = &timers[i];
      timers[i].counter = counter;
    }
    SpawnThread(kernel, {.name = "starter", .function = StartNotes, .argument = timers, .cpu = 1});
    SleepUs(1000);
    AdoptTimers(platform::ThisCpu(), CpuNumber(1));
    EXPECT_TRUE(StopTimer(kernel, timers[1].timer));
    SleepUs(10'000);
    EXPECT_EQ(*counter, 2u);
    EXPECT_EQ(timers[0].cpu, 0u);
    EXPECT_EQ(timers[2].cpu, 0u);
    EXPECT_EQ(timers[1].cpu, ~0u);
  });
}

TEST(SchedTime, AnIdleMachineTakesNoTimerInterrupts) {
  KernelMachine machine({.cpus = 8});
  machine.Run([&](Kernel&) {
    SleepUs(50'000);  // what boot has left comes to rest
    const sim::Stats before = machine.machine().stats();
    SleepUs(10'000'000);
    // The sleep's own end.
    EXPECT_EQ(machine.machine().stats().timer_interrupts - before.timer_interrupts, 1u);
    EXPECT_EQ(machine.machine().stats().interrupts - before.interrupts, 1u);
  });
}

void Burn(void* us) { platform::DelayUs(static_cast<uint32_t>(reinterpret_cast<uint64_t>(us))); }

TEST(SchedTime, ACpuTicksWhileItHasWorkAndNotLonger) {
  KernelMachine machine({.cpus = 2});
  machine.Run([&](Kernel& kernel) {
    SleepUs(50'000);
    const uint64_t before = machine.machine().stats().timer_interrupts;
    SpawnThread(kernel, {.name = "burn",
                         .function = Burn,
                         .argument = reinterpret_cast<void*>(uint64_t{400'000}),
                         .cpu = 1});
    SleepUs(402'000);
    // 100 jiffies, and this thread's own sleep.
    const uint64_t ticks = machine.machine().stats().timer_interrupts - before;
    EXPECT_GE(ticks, 99u);
    EXPECT_LE(ticks, 103u);
    SleepUs(400'000);
    EXPECT_LE(machine.machine().stats().timer_interrupts - before, ticks + 3);
  });
}

}  // namespace
}  // namespace sipi
