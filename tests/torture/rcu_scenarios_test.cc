// rcuscale, refscale and the call_rcu workers on the simulator: what they leave for the reports.
#include "guest/scenario/scenario.h"
#include "tests/torture/scenario_run.h"

namespace sipi {
namespace {

using abi::TraceEvent;

struct Window {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t measurements = 0;  // kSyncBegin .. kSyncEnd within
};

// The writer's window on its CPU.
Window WindowOf(const ScenarioRun& run, uint32_t cpu) {
  Window window;
  bool inside = false;
  for (const abi::TraceRecord& each : run.records[cpu]) {
    const TraceEvent event = each.event;
    if (event == TraceEvent::kScaleEnd) window.end = each.tsc;
    if (event == TraceEvent::kScaleBegin) window.begin = each.tsc;
    if (window.begin == 0 || window.end != 0) continue;
    if (event == TraceEvent::kSyncBegin) inside = true;
    if (event == TraceEvent::kSyncEnd && inside) ++window.measurements;
  }
  return window;
}

KernelOptions ScaleOptions(uint32_t cpus) {
  KernelOptions options;
  options.cpus = cpus;
  options.ring_records = 100'000;
  options.scenario.measurements = 20;
  return options;
}

void ExpectWindows(const ScenarioRun& run, uint32_t writers, uint64_t measurements) {
  ASSERT_TRUE(run.ok) << run.end;
  EXPECT_EQ(run.Count(TraceEvent::kScaleBegin), writers);
  EXPECT_EQ(run.Count(TraceEvent::kScaleEnd), writers);
  uint64_t last_begin = 0;
  uint64_t first_end = ~uint64_t{0};
  for (uint32_t cpu = 0; cpu < writers; ++cpu) {
    const Window window = WindowOf(run, cpu);
    EXPECT_GE(window.measurements, measurements) << "CPU " << cpu;
    last_begin = std::max(last_begin, window.begin);
    first_end = std::min(first_end, window.end);
  }
  EXPECT_LT(last_begin, first_end) << "there is a time when all measure";
}

TEST(RcuScale, EachWriterHasItsMeasurements) {
  const ScenarioRun run = RunScenario(ScaleOptions(4), RunRcuScale);
  ExpectWindows(run, 4, 20);
}

TEST(RcuScale, FewerWritersThanCpus) {
  KernelOptions options = ScaleOptions(4);
  options.scenario.writers = 2;
  ExpectWindows(RunScenario(options, RunRcuScale), 2, 20);
}

// As many as the flags let one ask for share the CPUs with the writers.
TEST(RcuScale, EndsHoweverManyRead) {
  for (const uint32_t readers : {2u, 128u}) {
    KernelOptions options = ScaleOptions(2);
    options.scenario.readers = readers;
    ExpectWindows(RunScenario(options, RunRcuScale), 2, 20);
  }
}

TEST(RcuScale, ExpeditedIsServedByExpeditedGracePeriods) {
  KernelOptions options = ScaleOptions(4);
  options.scenario.expedited = 1;
  const ScenarioRun run = RunScenario(options, RunRcuScale);
  ExpectWindows(run, 4, 20);
  const auto expedited = static_cast<uint32_t>(abi::GracePeriodKind::kExpedited);
  for (const auto& cpu : run.records) {
    for (const abi::TraceRecord& each : cpu) {
      if (each.event != TraceEvent::kSyncEnd) continue;
      EXPECT_EQ(each.value, expedited);
    }
  }
}

// A quiet normal grace period lasts two jiffies: the number that the reference has measured.
TEST(RcuScale, AQuietNormalGracePeriodLastsTwoJiffies) {
  KernelOptions options = ScaleOptions(4);
  options.scenario.writers = 1;
  options.kernel.rcu_normal_wake_from_gp = 1;  // Linux's default since 7.2
  const ScenarioRun run = RunScenario(options, RunRcuScale);
  ASSERT_TRUE(run.ok) << run.end;
  const Window window = WindowOf(run, 0);
  constexpr uint64_t kTicksPerJiffy = uint64_t{2'000'000} * 4;  // 2 GHz, 250 Hz
  const uint64_t mean = (window.end - window.begin) / window.measurements;
  EXPECT_NEAR(static_cast<double>(mean), 2.0 * kTicksPerJiffy, 0.25 * kTicksPerJiffy);
}

TEST(RcuScale, AsyncQueuesCallbacksAndWaitsForTheBarrierWhenTooManyAreInFlight) {
  KernelOptions options = ScaleOptions(2);
  options.scenario.async = 1;
  options.scenario.measurements = 1500;
  const ScenarioRun run = RunScenario(options, RunRcuScale);
  ExpectWindows(run, 2, 1500);
  EXPECT_GE(run.Count(TraceEvent::kBarrierBegin), 2u);
}

// An asynchronous writer never sleeps. One that measured before all have started would keep its CPU
// from the thread that is to start the others, and fill its ring.
TEST(RcuScale, NobodyMeasuresBeforeAllHaveStarted) {
  for (const bool async : {false, true}) {
    KernelOptions options = ScaleOptions(4);
    options.scenario.async = async ? 1 : 0;
    const ScenarioRun run = RunScenario(options, RunRcuScale);
    ASSERT_TRUE(run.ok) << run.end;
    for (uint32_t cpu = 0; cpu < 4; ++cpu) {
      uint64_t measured = 0;
      for (const abi::TraceRecord& each : run.records[cpu]) {
        if (each.event == TraceEvent::kScaleBegin) break;
        measured += each.event == TraceEvent::kSyncBegin ? 1u : 0u;
      }
      EXPECT_EQ(measured, 0u) << "CPU " << cpu << " async " << async;
    }
  }
}

// Each step takes so long that callbacks have run before their heads are needed again: no barrier
// ever makes a writer sleep.
TEST(RcuScale, AsyncEndsWhereCallbacksRunSoonerThanTheyAreQueued) {
  KernelOptions options = ScaleOptions(4);
  options.scenario.async = 1;
  options.kernel.hz = 10'000;
  options.chaos.on = true;
  options.chaos.schedule = sim::Schedule::kRandom;
  const ScenarioRun run = RunScenario(options, RunRcuScale);
  ExpectWindows(run, 4, 20);
  EXPECT_EQ(run.Count(TraceEvent::kSyncBegin), run.Count(TraceEvent::kSyncEnd));
}

// The window ends when the callbacks have run, so that there are grace periods in it.
TEST(RcuScale, AsyncWindowsHoldTheGracePeriodsOfTheirCallbacks) {
  KernelOptions options = ScaleOptions(2);
  options.scenario.async = 1;
  const ScenarioRun run = RunScenario(options, RunRcuScale);
  ASSERT_TRUE(run.ok) << run.end;
  uint64_t in_window = 0;
  for (uint32_t cpu = 0; cpu < 2; ++cpu) {
    const Window window = WindowOf(run, cpu);
    for (const auto& records : run.records) {
      for (const abi::TraceRecord& each : records) {
        if (each.event != TraceEvent::kGpEnd) continue;
        in_window += each.tsc >= window.begin && each.tsc <= window.end ? 1u : 0u;
      }
    }
  }
  EXPECT_GE(in_window, 2u);
}

TEST(RefScale, HasAPointForEachRound) {
  KernelOptions options;
  options.cpus = 4;
  options.scenario.rounds = 5;
  const ScenarioRun run = RunScenario(options, RunRefScale);
  ASSERT_TRUE(run.ok) << run.end;
  EXPECT_EQ(run.Count(TraceEvent::kRefPoint), 5u);
}

KernelOptions CallRcuOptions(abi::WorkerPinning pinning) {
  KernelOptions options;
  options.cpus = 4;
  options.ring_records = 100'000;
  options.kernel.worker_pinning = pinning;
  options.scenario.measurements = 500;
  options.scenario.duration_ms = 100;
  return options;
}

void ExpectAllRun(const ScenarioRun& run) {
  ASSERT_TRUE(run.ok) << run.end;
  EXPECT_GE(run.counters.callbacks_queued, 4 * 500u);
  EXPECT_EQ(run.counters.callbacks_queued, run.counters.callbacks_run);
  EXPECT_EQ(run.counters.failures, 0u);
}

// Microseconds from a worker's start until it bound itself; the earliest.
uint32_t FirstPinnedUs(const ScenarioRun& run) {
  uint32_t first = ~0u;
  for (const auto& cpu : run.records) {
    for (const abi::TraceRecord& each : cpu) {
      if (each.event == TraceEvent::kWorkerPinned) first = std::min(first, each.value);
    }
  }
  return first;
}

TEST(CallRcu, PinnedAtTheStartEachWorkerBindsItselfAtOnce) {
  const ScenarioRun run = RunScenario(CallRcuOptions(abi::WorkerPinning::kAtStart), RunCallRcu);
  ExpectAllRun(run);
  EXPECT_EQ(run.Count(TraceEvent::kWorkerPinned), 4u);
  EXPECT_LT(FirstPinnedUs(run), 1000u);
}

TEST(CallRcu, PinnedAtTheFirstWorkOnlyThoseThatHaveWorkBindThemselves) {
  KernelOptions options = CallRcuOptions(abi::WorkerPinning::kAtFirstWork);
  options.scenario.writers = 2;
  const ScenarioRun run = RunScenario(options, RunCallRcu);
  ASSERT_TRUE(run.ok) << run.end;
  EXPECT_EQ(run.Count(TraceEvent::kWorkerPinned), 2u);
  EXPECT_EQ(run.counters.callbacks_queued, run.counters.callbacks_run);
}

// The workers of CPUs that boot has left out have nothing to do, and run on no other CPU.
TEST(CallRcu, WorkersOfCpusThatAreLeftOutDoNothing) {
  for (const auto pinning : {abi::WorkerPinning::kLazy, abi::WorkerPinning::kAtStart}) {
    KernelOptions options = CallRcuOptions(pinning);
    options.cpus = 6;
    options.threads_per_core = 2;
    options.smt = false;
    const ScenarioRun run = RunScenario(options, RunCallRcu);
    ASSERT_TRUE(run.ok) << run.end;
    EXPECT_EQ(run.counters.callbacks_queued, run.counters.callbacks_run);
    for (const auto& cpu : run.records) {
      for (const abi::TraceRecord& each : cpu) {
        const bool by_worker =
            each.event == TraceEvent::kWorkerRanAway || each.event == TraceEvent::kWorkerPinned;
        EXPECT_FALSE(by_worker && each.target % 2 != 0) << "CPU " << each.target;
      }
    }
  }
}

// However many are asked for: the updaters end in time, and say how many it were.
TEST(CallRcu, QueueingIsBoundedInTime) {
  KernelOptions options = CallRcuOptions(abi::WorkerPinning::kAtStart);
  options.scenario.measurements = 100'000;
  options.scenario.queue_ms = 1;
  const ScenarioRun run = RunScenario(options, RunCallRcu);
  ASSERT_TRUE(run.ok) << run.end;
  uint64_t queued = 0;
  for (const auto& cpu : run.records) {
    for (const abi::TraceRecord& each : cpu) {
      if (each.event == TraceEvent::kScaleEnd) queued += each.value;
    }
  }
  EXPECT_GT(queued, 0u);
  EXPECT_LT(queued, 4 * 100'000u);
  EXPECT_GE(run.counters.callbacks_queued, queued);
  EXPECT_EQ(run.counters.callbacks_queued, run.counters.callbacks_run);
}

TEST(CallRcu, PinnedLazilyNobodyIsBoundBefore256Loops) {
  const ScenarioRun short_run = RunScenario(CallRcuOptions(abi::WorkerPinning::kLazy), RunCallRcu);
  ExpectAllRun(short_run);
  EXPECT_EQ(short_run.Count(TraceEvent::kWorkerPinned), 0u);
  KernelOptions options = CallRcuOptions(abi::WorkerPinning::kLazy);
  options.scenario.duration_ms = 9000;
  const ScenarioRun run = RunScenario(options, RunCallRcu);
  ExpectAllRun(run);
  EXPECT_GT(run.Count(TraceEvent::kWorkerPinned), 0u);
  // A worker that sits on its CPU anyway stays free, as liburcu's do.
  EXPECT_GE(FirstPinnedUs(run), 2'560'000u) << "256 loops of 10 ms";
}

// From the first switch's begin to the last one's end.
uint64_t SmtTicks(const ScenarioRun& run) {
  uint64_t begin = ~uint64_t{0};
  uint64_t end = 0;
  for (const auto& cpu : run.records) {
    for (const abi::TraceRecord& each : cpu) {
      if (each.event == abi::TraceEvent::kSmtBegin) begin = std::min(begin, each.tsc);
      if (each.event == abi::TraceEvent::kSmtEnd) end = std::max(end, each.tsc);
    }
  }
  return end - begin;
}

// A CPU that a kernel thread keeps busy says nothing before RCU's patience with it ends, HZ/10
// jiffies, where its readers could not be preempted. The tick answers for one whose readers can.
TEST(SmtScenario, ABusyCpuHoldsUpNonPreemptibleGracePeriodsOnly) {
  constexpr uint64_t kPatienceTicks = uint64_t{2'000'000} * 100;  // 2 GHz, 100 ms
  for (const bool preemptible : {false, true}) {
    KernelOptions options;
    options.cpus = 8;
    options.threads_per_core = 4;
    options.kernel.preemption = abi::Preemption::kVoluntary;
    options.kernel.rcu_flavour =
        preemptible ? abi::RcuFlavour::kPreemptible : abi::RcuFlavour::kNonPreemptible;
    options.scenario.approaches = 1;  // SmtApproach::kNone
    options.scenario.kernel_busy = 1;
    const ScenarioRun run = RunScenario(options, RunSmt);
    ASSERT_TRUE(run.ok) << run.end;
    EXPECT_EQ(run.cpus_online, 8u);
    constexpr uint64_t kWaits = 8;  // one for each of six CPUs that go, and the lock's both ways
    EXPECT_EQ(run.Count(abi::TraceEvent::kSyncEnd), kWaits);
    if (preemptible) {
      EXPECT_LT(SmtTicks(run), kWaits * kPatienceTicks / 2);
    } else {
      EXPECT_GT(SmtTicks(run), kWaits * kPatienceTicks);
    }
  }
}

// CPU 3 of 5 does not come up.
void MakeAHole(KernelOptions& options) {
  options.cpus = 5;
  options.strategy = sequence::StrategyId::kSerial;
  options.fault = {.kind = abi::Fault::kFailStep, .cpu = 3, .value = 58};
}

// Three cores with two threads each, of which only the first is brought up.
void LeaveSiblingsOut(KernelOptions& options) {
  options.cpus = 6;
  options.threads_per_core = 2;
  options.smt = false;
}

constexpr void (*kMissing[])(KernelOptions&) = {MakeAHole, LeaveSiblingsOut};

// What is bound to a CPU that is not there would never run: each scenario ends, and does what it
// can on the CPUs that are online.
TEST(MissingCpus, RcuScaleMeasuresOnTheOthers) {
  for (const auto make : kMissing) {
    for (const uint32_t writers : {0u, 2u, 5u}) {
      KernelOptions options = ScaleOptions(4);
      make(options);
      options.scenario.measurements = 5;
      options.scenario.writers = writers;
      options.scenario.readers = 6;
      const ScenarioRun run = RunScenario(options, RunRcuScale);
      ASSERT_TRUE(run.ok) << run.end;
      const uint32_t expected = writers == 2 ? 2 : run.cpus_online;
      EXPECT_EQ(run.Count(TraceEvent::kScaleEnd), expected);
      uint32_t measured = 0;
      for (uint32_t cpu = 0; cpu < options.cpus; ++cpu) {
        const Window window = WindowOf(run, cpu);
        if (window.begin == 0) continue;
        EXPECT_GE(window.measurements, 5u) << "CPU " << cpu;
        ++measured;
      }
      EXPECT_EQ(measured, expected) << "a CPU each";
    }
  }
}

TEST(MissingCpus, RefScaleHasItsReadersOnTheOthers) {
  for (const auto make : kMissing) {
    for (const uint32_t readers : {0u, 1u, 6u}) {
      KernelOptions options;
      make(options);
      options.scenario.rounds = 3;
      options.scenario.readers = readers;
      const ScenarioRun run = RunScenario(options, RunRefScale);
      ASSERT_TRUE(run.ok) << run.end;
      EXPECT_EQ(run.Count(TraceEvent::kRefPoint), 3u);
    }
  }
}

TEST(MissingCpus, CallRcuQueuesOnTheOthers) {
  for (const auto make : kMissing) {
    for (const auto pinning : {abi::WorkerPinning::kLazy, abi::WorkerPinning::kAtStart}) {
      KernelOptions options = CallRcuOptions(pinning);
      make(options);
      const ScenarioRun run = RunScenario(options, RunCallRcu);
      ASSERT_TRUE(run.ok) << run.end;
      EXPECT_GE(run.counters.callbacks_queued, uint64_t{500} * run.cpus_online);
      EXPECT_EQ(run.counters.callbacks_queued, run.counters.callbacks_run);
      EXPECT_EQ(run.Count(TraceEvent::kScaleEnd), run.cpus_online);
    }
  }
}

// The busy threads of primaries that are not there have no CPU to keep busy.
TEST(MissingCpus, SmtSwitchesWithTheOthers) {
  KernelOptions options;
  options.cpus = 8;
  options.threads_per_core = 2;
  options.strategy = sequence::StrategyId::kSerial;
  options.fault = {.kind = abi::Fault::kFailStep, .cpu = 2, .value = 58};
  options.scenario.approaches = 1;
  options.scenario.kernel_busy = 3;
  const ScenarioRun run = RunScenario(options, RunSmt);
  ASSERT_TRUE(run.ok) << run.end;
  EXPECT_EQ(run.Count(TraceEvent::kSmtEnd), 2u);
}

}  // namespace
}  // namespace sipi
