// rcuscale, refscale and the call_rcu workers on the simulator: what they leave for the reports.
#include "tests/torture/simulated_kernel.h"

namespace sipi {
namespace {

using abi::TraceEvent;

struct Window {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t measurements = 0;  // kSyncBegin .. kSyncEnd within
};

// The writer's window on its CPU.
Window WindowOf(const KernelRun& run, uint32_t cpu) {
  Window window;
  bool inside = false;
  for (const KernelRun::Record& each : run.records) {
    if (each.cpu != cpu) continue;
    const TraceEvent event = each.record.event;
    if (event == TraceEvent::kScaleEnd) window.end = each.record.tsc;
    if (event == TraceEvent::kScaleBegin) window.begin = each.record.tsc;
    if (window.begin == 0 || window.end != 0) continue;
    if (event == TraceEvent::kSyncBegin) inside = true;
    if (event == TraceEvent::kSyncEnd && inside) ++window.measurements;
  }
  return window;
}

RunConfig ScaleConfig(uint32_t cpus) {
  RunConfig config = KernelConfig(cpus, abi::Scenario::kRcuScale);
  config.scenario_knobs.measurements = 20;
  return config;
}

void ExpectWindows(const KernelRun& run, uint32_t writers, uint64_t measurements) {
  ASSERT_TRUE(run.ok()) << run.panic;
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
  const KernelRun run = RunKernel(ScaleConfig(4));
  ExpectWindows(run, 4, 20);
  EXPECT_EQ(run.Count(TraceEvent::kTortureFailure), 0u);
}

TEST(RcuScale, FewerWritersThanCpus) {
  RunConfig config = ScaleConfig(4);
  config.scenario_knobs.writers = 2;
  ExpectWindows(RunKernel(config), 2, 20);
}

TEST(RcuScale, ExpeditedIsServedByExpeditedGracePeriods) {
  RunConfig config = ScaleConfig(4);
  config.scenario_knobs.expedited = 1;
  const KernelRun run = RunKernel(config);
  ExpectWindows(run, 4, 20);
  for (const KernelRun::Record& each : run.records) {
    if (each.record.event != TraceEvent::kSyncEnd) continue;
    EXPECT_EQ(each.record.value, static_cast<uint32_t>(abi::GracePeriodKind::kExpedited));
  }
}

// A quiet normal grace period lasts two jiffies: the number that the reference has measured.
TEST(RcuScale, AQuietNormalGracePeriodLastsTwoJiffies) {
  RunConfig config = ScaleConfig(4);
  config.scenario_knobs.writers = 1;
  const KernelRun run = RunKernel(config);
  ASSERT_TRUE(run.ok()) << run.panic;
  const Window window = WindowOf(run, 0);
  constexpr uint64_t kTicksPerJiffy = uint64_t{2'000'000} * 4;  // 2 GHz, 250 Hz
  const uint64_t mean = (window.end - window.begin) / window.measurements;
  EXPECT_NEAR(static_cast<double>(mean), 2.0 * kTicksPerJiffy, 0.25 * kTicksPerJiffy);
}

TEST(RcuScale, AsyncQueuesCallbacksAndWaitsForTheBarrierWhenTooManyAreInFlight) {
  RunConfig config = ScaleConfig(2);
  config.scenario_knobs.async = 1;
  config.scenario_knobs.measurements = 1500;
  const KernelRun run = RunKernel(config);
  ExpectWindows(run, 2, 1500);
  EXPECT_GE(run.Count(TraceEvent::kBarrierBegin), 2u);
}

TEST(RefScale, HasAPointForEachRound) {
  RunConfig config = KernelConfig(4, abi::Scenario::kRefScale);
  config.scenario_knobs.rounds = 5;
  const KernelRun run = RunKernel(config);
  ASSERT_TRUE(run.ok()) << run.panic;
  EXPECT_EQ(run.Count(TraceEvent::kRefPoint), 5u);
}

RunConfig CallRcuConfig(abi::WorkerPinning pinning) {
  RunConfig config = KernelConfig(4, abi::Scenario::kCallRcu);
  config.kernel.worker_pinning = pinning;
  config.scenario_knobs.measurements = 500;
  config.scenario_knobs.duration_ms = 100;
  return config;
}

void ExpectAllRun(const KernelRun& run) {
  ASSERT_TRUE(run.ok()) << run.panic;
  EXPECT_GE(run.counters.callbacks_queued, 4 * 500u);
  EXPECT_EQ(run.counters.callbacks_queued, run.counters.callbacks_run);
  EXPECT_EQ(run.counters.failures, 0u);
}

uint32_t FirstPinnedUs(const KernelRun& run) {
  uint32_t first = ~0u;
  for (const KernelRun::Record& each : run.records) {
    if (each.record.event == TraceEvent::kWorkerPinned) first = std::min(first, each.record.value);
  }
  return first;
}

TEST(CallRcu, PinnedAtTheStartEachWorkerBindsItselfAtOnce) {
  const KernelRun run = RunKernel(CallRcuConfig(abi::WorkerPinning::kAtStart));
  ExpectAllRun(run);
  EXPECT_EQ(run.Count(TraceEvent::kWorkerPinned), 4u);
  EXPECT_LT(FirstPinnedUs(run), 1000u);
}

TEST(CallRcu, PinnedAtTheFirstWorkOnlyThoseThatHaveWorkBindThemselves) {
  RunConfig config = CallRcuConfig(abi::WorkerPinning::kAtFirstWork);
  config.scenario_knobs.writers = 2;
  const KernelRun run = RunKernel(config);
  ASSERT_TRUE(run.ok()) << run.panic;
  // The barrier's callback is work as well, for every worker.
  EXPECT_EQ(run.Count(TraceEvent::kWorkerPinned), 4u);
  EXPECT_EQ(run.counters.callbacks_queued, run.counters.callbacks_run);
}

TEST(CallRcu, PinnedLazilyNobodyIsBoundBefore256Loops) {
  const KernelRun short_run = RunKernel(CallRcuConfig(abi::WorkerPinning::kLazy));
  ExpectAllRun(short_run);
  EXPECT_EQ(short_run.Count(TraceEvent::kWorkerPinned), 0u);
  RunConfig config = CallRcuConfig(abi::WorkerPinning::kLazy);
  config.scenario_knobs.duration_ms = 9000;
  const KernelRun run = RunKernel(config);
  ExpectAllRun(run);
  // A worker that sits on its CPU anyway stays free, as liburcu's do.
  for (const KernelRun::Record& each : run.records) {
    if (each.record.event != TraceEvent::kWorkerPinned) continue;
    EXPECT_GE(each.record.value, 2'560'000u) << "microseconds: 256 loops of 10 ms";
  }
}

}  // namespace
}  // namespace sipi
