// APs that are slower than the bound of a handshake, wherever on their way that bound passes: the
// run is partial, whoever is missing is named, and the kernel neither panics nor waits for ever.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/sim/simulated.h"
#include "vmm/timeline/strategy_name.h"

namespace sipi {
namespace {

using abi::TraceEvent;
using sequence::StrategyId;

RunConfig ShortBound(StrategyId strategy, uint32_t timeout_ms, bool services) {
  RunConfig config = SimulatedConfig(4, strategy);
  config.knobs.handshake_timeout_ms = timeout_ms;
  config.kernel.services = services ? 1 : 0;
  return config;
}

std::string Described(const RunConfig& config) {
  return StrategyName(config.strategy) + ", " + std::to_string(config.knobs.handshake_timeout_ms) +
         " ms" + (config.kernel.services != 0 ? ", services" : "");
}

// Whatever comes of it, it is said CPU by CPU.
RunRecord ExpectAnEnd(const RunConfig& config) {
  SCOPED_TRACE(Described(config));
  RunRecord record = RunIt(config);
  if (record.outcome == Outcome::kComplete) return record;
  EXPECT_EQ(record.outcome, Outcome::kPartial) << record.diagnosis;
  for (const CpuFinal& cpu : record.cpus) {
    if (cpu.online) continue;
    EXPECT_NE(record.diagnosis.find("CPU " + std::to_string(cpu.cpu.value) + " "),
              std::string::npos)
        << record.diagnosis;
  }
  return record;
}

// Over all strategies, with and without services. `change` makes APs late.
template <class Change>
uint32_t CountPartial(Change change, const std::vector<uint32_t>& timeouts_ms = {1, 2, 3, 4}) {
  uint32_t partial = 0;
  for (const bool services : {false, true}) {
    for (const StrategyId strategy : kAllStrategies) {
      for (const uint32_t timeout_ms : timeouts_ms) {
        RunConfig config = ShortBound(strategy, timeout_ms, services);
        change(config);
        partial += ExpectAnEnd(config).outcome == Outcome::kPartial ? 1u : 0u;
      }
    }
  }
  return partial;
}

TEST(LateAp, GivenUpInItsStartingSection) {
  // Long after everybody's bound.
  EXPECT_GT(CountPartial([](RunConfig& config) { config.knobs.calibration_us = 100'000; }), 40u);
  // About when it passes.
  EXPECT_GT(CountPartial([](RunConfig& config) {
              config.profile.startup = {.ns = 2'000'000, .jitter_ns = 1'000'000};
              config.profile.identify = {.ns = 1'000'000, .jitter_ns = 1'000'000};
            }),
            10u);
}

TEST(LateAp, GivenUpInItsOnlineSection) {
  EXPECT_GT(CountPartial([](RunConfig& config) {
              config.profile.online_steps = {.ns = 3'000'000, .jitter_ns = 2'000'000};
            }),
            10u);
}

// Those that wait for their TSC check: the control CPU may have turned away for good.
TEST(LateAp, GivenUpWhileItsTscIsChecked) {
  // One check is longer than the bound; or the third one, for which two others are waited for.
  const auto checked = [](RunConfig& config) {
    config.knobs.tsc_check = 1;
    config.knobs.tsc_check_us = 600;
  };
  EXPECT_GT(CountPartial(checked, {1}), 5u);
  EXPECT_GT(CountPartial(
                [&](RunConfig& config) {
                  checked(config);
                  config.knobs.tsc_check_us = 50;
                  config.profile.identify = {.ns = 1'000'000, .jitter_ns = 1'000'000};
                },
                {1, 2}),
            5u);
}

// Its first try was given up while it ran, and is undone once it is seen dead.
TEST(LateAp, ALaterTryFindsItDeadAndBringsItUp) {
  uint32_t recovered = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    RunConfig config = ShortBound(StrategyId::kSerial, 4, /*services=*/true);
    config.seed = seed;
    config.retry = true;
    config.knobs.calibration_us = 100;
    config.profile.identify = {.ns = 6'000'000, .jitter_ns = 6'000'000};
    const RunRecord record = ExpectAnEnd(config);
    const bool lost =
        std::any_of(record.events.begin(), record.events.end(), [](const Event& event) {
          return event.name == TraceEvent::kTimeout &&
                 event.value == static_cast<uint32_t>(abi::SyncState::kShouldDie);
        });
    recovered += lost && record.outcome == Outcome::kComplete ? 1u : 0u;
  }
  EXPECT_GT(recovered, 0u);
}

// What the check is for; each AP's own finding is its own.
TEST(TscCheck, FindsTheCpuWhoseTscIsAhead) {
  for (const bool services : {false, true}) {
    RunConfig config = SimulatedConfig(4, StrategyId::kFull);
    config.kernel.services = services ? 1 : 0;
    config.knobs.tsc_check = 1;
    config.knobs.tsc_check_us = 100;
    EXPECT_TRUE(RunIt(config).notes.empty());
    config.fault = {.kind = abi::Fault::kTscAhead, .cpu = 2, .value = 50'000};
    const RunRecord record = RunIt(config);
    EXPECT_EQ(record.outcome, Outcome::kComplete) << record.diagnosis;
    ASSERT_EQ(record.notes.size(), 1u);
    EXPECT_EQ(record.notes[0].find("TSC check: a CPU's TSC is behind by "), 0u);
    for (const Event& event : record.events) {
      if (event.name != TraceEvent::kTscCheckEnd) continue;
      if (event.target == 2) {
        EXPECT_GT(event.value, 40'000u);
        EXPECT_LE(event.value, 50'000u);
      } else {
        EXPECT_EQ(event.value, 0u) << event.target;
      }
    }
  }
}

// CPUs go off, do not come back, and are named; the others take their turns.
TEST(LateAp, ACpuThatDoesNotComeBackDoesNotEndTheHotplugScenario) {
  for (const StrategyId strategy : {StrategyId::kSerial, StrategyId::kFull}) {
    RunConfig config = ShortBound(strategy, 100, /*services=*/true);
    config.scenario = abi::Scenario::kHotplug;
    config.scenario_knobs.rounds = 2;
    config.fault = {.kind = abi::Fault::kLostInit, .cpu = 1, .value = 0};
    const RunRecord record = ExpectAnEnd(config);
    EXPECT_EQ(record.outcome, Outcome::kPartial);
    EXPECT_FALSE(record.cpus[1].online);
    EXPECT_TRUE(record.cpus[2].online);
    uint32_t others = 0;
    for (const Event& event : record.events) {
      if (event.name != TraceEvent::kHotplugEnd || event.target == 1) continue;
      EXPECT_EQ(event.value, 0u) << event.target;
      ++others;
    }
    EXPECT_EQ(others, 8u);
  }
}

}  // namespace
}  // namespace sipi
