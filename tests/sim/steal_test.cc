// Case G6: calibration on cores that others take away, by pulses of steal time or since there are
// four times as many CPUs as cores.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/sim/simulated.h"
#include "vmm/report/run_json.h"

namespace sipi {
namespace {

using abi::TraceEvent;
using sequence::StrategyId;

constexpr uint32_t kCpus = 64;
constexpr uint32_t kTscKhz = 2'000'000;

RunConfig Stolen(StrategyId strategy, uint64_t seed = 1, uint32_t cpus = kCpus) {
  RunConfig config = SimulatedConfig(cpus, strategy);
  config.steal = {.period_ms = 4, .min_ms = 1, .max_ms = 20};
  config.seed = seed;
  return config;
}

// Every CPU has the machine's frequency, to a thousandth.
void ExpectRightFrequencies(const RunRecord& record) {
  ASSERT_EQ(record.outcome, Outcome::kComplete) << record.diagnosis;
  for (const CpuFinal& cpu : record.cpus) {
    EXPECT_NEAR(cpu.tsc_khz, kTscKhz, kTscKhz / 1000.0) << "CPU " << cpu.cpu.value;
  }
}

// Each CPU shows its own calibration, whose last sample took the whole window after the last one
// that was rejected. How many were.
uint64_t ExpectEachCalibrates(const RunRecord& record) {
  constexpr int64_t kWindowNs = 990'000;
  std::vector<int64_t> sample_begin(record.cpus_offered, -1);
  std::vector<bool> done(record.cpus_offered, false);
  uint64_t rejected = 0;
  for (const Event& event : record.events) {
    if (event.cpu < 0) continue;
    const auto cpu = static_cast<size_t>(event.cpu);
    if (event.name == TraceEvent::kCalibrateBegin) sample_begin[cpu] = event.t_ns;
    if (event.name == TraceEvent::kCalibrateRejected) {
      sample_begin[cpu] = event.t_ns;
      ++rejected;
    }
    if (event.name != TraceEvent::kCalibrateEnd) continue;
    EXPECT_GE(sample_begin[cpu], 0) << cpu;
    EXPECT_GE(event.t_ns - sample_begin[cpu], kWindowNs) << cpu;
    done[cpu] = true;
  }
  EXPECT_EQ(std::count(done.begin(), done.end(), false), 0);
  EXPECT_EQ(CountOf(record, TraceEvent::kCalibrateReused), 0u);
  return rejected;
}

TEST(Steal, PulsesShowInTheTimelineAndAreCounted) {
  const RunRecord record = RunIt(Stolen(StrategyId::kFull));
  ASSERT_EQ(record.outcome, Outcome::kComplete) << record.diagnosis;
  uint64_t pulses = 0;
  int64_t stolen_ns = 0;
  std::vector<int64_t> begin(kCpus, -1);
  for (const Event& event : record.events) {
    if (event.name == TraceEvent::kStolenBegin) begin[static_cast<size_t>(event.cpu)] = event.t_ns;
    if (event.name != TraceEvent::kStolenEnd) continue;
    ASSERT_GE(begin[static_cast<size_t>(event.cpu)], 0);
    const int64_t ns = event.t_ns - begin[static_cast<size_t>(event.cpu)];
    EXPECT_GT(ns, 0);
    EXPECT_LE(ns, 20'000'000);
    begin[static_cast<size_t>(event.cpu)] = -1;
    stolen_ns += ns;
    ++pulses;
  }
  EXPECT_GT(pulses, kCpus / 2);
  EXPECT_EQ(record.counters.at("sim.steals"), pulses);
  EXPECT_EQ(record.counters.at("sim.stolen_ns"), static_cast<uint64_t>(stolen_ns));
  RunConfig quiet = Stolen(StrategyId::kFull);
  quiet.steal = {};
  EXPECT_EQ(CountOf(RunIt(quiet), TraceEvent::kStolenBegin), 0u);
}

TEST(Steal, TheSeedReplaysThePulses) {
  EXPECT_EQ(RunJson(RunIt(Stolen(StrategyId::kKick))), RunJson(RunIt(Stolen(StrategyId::kKick))));
  EXPECT_NE(RunJson(RunIt(Stolen(StrategyId::kKick))),
            RunJson(RunIt(Stolen(StrategyId::kKick, 2))));
}

TEST(Steal, EveryStrategyEndsAndTheFrequenciesAreRight) {
  for (const StrategyId strategy : kAllStrategies) ExpectRightFrequencies(RunIt(Stolen(strategy)));
}

// A sample is spoilt by a pulse within one of its readings, a microsecond each: that takes many
// CPUs.
TEST(Steal, G6BadSamplesAreRejectedAndTakenAgain) {
  for (const bool deadline : {true, false}) {
    uint64_t rejected = 0;
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      RunConfig config = SimulatedConfig(1'024, StrategyId::kFull);
      config.steal = {.period_ms = 1, .min_ms = 1, .max_ms = 20};
      config.seed = seed;
      config.hidden.tsc_deadline = !deadline;
      const RunRecord record = RunIt(config);
      ExpectRightFrequencies(record);
      rejected += ExpectEachCalibrates(record);
    }
    EXPECT_GT(rejected, 0u) << (deadline ? "TSC deadline" : "periodic timer");
  }
}

TEST(Steal, G6WithReuseAllApsGetTheSameValueInNoTime) {
  RunConfig config = Stolen(StrategyId::kFull);
  config.strategy.reuse_calibration = 1;
  const RunRecord record = RunIt(config);
  ExpectRightFrequencies(record);
  EXPECT_EQ(CountOf(record, TraceEvent::kCalibrateBegin), 1u) << "the boot CPU's alone";
  for (uint32_t cpu = 1; cpu < kCpus; ++cpu) {
    EXPECT_EQ(record.cpus[cpu].tsc_khz, record.cpus[0].tsc_khz);
    const auto track = static_cast<int32_t>(cpu);
    const int64_t reused = TimeOf(record, track, TraceEvent::kCalibrateReused);
    int64_t entered = -1;
    int64_t stolen = 0;
    for (const Event& event : record.events) {
      if (event.cpu != track || event.t_ns > reused) continue;
      if (event.name == TraceEvent::kCpuhpEnter) {
        entered = event.t_ns;
        stolen = 0;
      }
      if (event.name == TraceEvent::kStolenBegin) stolen -= event.t_ns;
      if (event.name == TraceEvent::kStolenEnd) stolen += event.t_ns;
    }
    EXPECT_LT(reused - entered - stolen, 2'000) << cpu;
  }
}

TEST(Steal, G6FourTimesAsManyCpusAsCores) {
  RunConfig config = SimulatedConfig(kCpus, StrategyId::kFull);
  config.host_cores = kCpus / 4;
  for (const abi::WaitMode wait : {abi::WaitMode::kHalt, abi::WaitMode::kSpin}) {
    config.knobs.ap_wait = wait;
    const RunRecord record = RunIt(config);
    ExpectRightFrequencies(record);
    ExpectEachCalibrates(record);
  }
  config.strategy.reuse_calibration = 1;
  const RunRecord reused = RunIt(config);
  ExpectRightFrequencies(reused);
  EXPECT_EQ(CountOf(reused, TraceEvent::kCalibrateReused), kCpus - 1);
  EXPECT_LT(reused.events.back().t_ns, RunIt([&] {
                                         config.strategy.reuse_calibration = 0;
                                         return config;
                                       }())
                                           .events.back()
                                           .t_ns);
}

// Pulses that take place while a CPU waits for a core are not made up for when it has one: with
// pulses as long as their distance or longer, each CPU would hold the core for longer than it had
// waited, and so on. Pulses take two thirds of each CPU's time here, and the CPUs share the rest.
TEST(Steal, CpusThatWaitForACoreLoseNothingMeanwhile) {
  struct Size {
    uint32_t cpus, cores;
  };
  constexpr int64_t kMostNs = 20'000'000'000;
  for (const Size size : {Size{3, 1}, Size{8, 1}, Size{16, 2}, Size{33, 4}}) {
    for (const StrategyId strategy : kAllStrategies) {
      for (const uint64_t seed : {uint64_t{1}, uint64_t{9}}) {
        RunConfig config = Stolen(strategy, seed, size.cpus);
        config.host_cores = size.cores;
        const RunRecord record = RunIt(config);
        EXPECT_EQ(record.outcome, Outcome::kComplete) << record.diagnosis;
        EXPECT_LT(record.events.back().t_ns, kMostNs)
            << sequence::BaseName(strategy) << ", " << size.cpus << " CPUs, seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace sipi
