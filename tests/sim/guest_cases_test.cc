// Cases G3, G4 and G5 on both machines: siblings, an AP that freezes and comes back, a CPU that
// fails before its neighbours are called.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "guest/abi/layout.h"
#include "guest/abi/percpu.h"
#include "tests/sim/simulated.h"

namespace sipi {
namespace {

using abi::Fault;
using abi::TraceEvent;
using sequence::StrategyId;

class GuestCase : public ::testing::TestWithParam<MachineKind> {
 protected:
  void SetUp() override {
    if (on_kvm() && access("/dev/kvm", R_OK | W_OK) != 0) GTEST_SKIP() << "no usable /dev/kvm";
  }

  bool on_kvm() const { return GetParam() == MachineKind::kKvm; }
  RunRecord Run(RunConfig config) const {
    config.machine = GetParam();
    if (on_kvm()) config.time_limit_ms = 60'000;
    return RunIt(config);
  }
};

// Times of a CPU's events of that name, in order.
std::vector<int64_t> TimesOf(const RunRecord& record, int32_t cpu, TraceEvent name) {
  std::vector<int64_t> times;
  for (const Event& event : record.events) {
    if (event.cpu == cpu && event.name == name) times.push_back(event.t_ns);
  }
  return times;
}

RunConfig ThirtyTwo(StrategyId strategy) {
  return WithTopology(SimulatedConfig(0, strategy), "cores=16,threads=2");
}

TEST_P(GuestCase, G3EveryPrimaryIsAliveBeforeAnySiblingIsKicked) {
  const RunConfig config = ThirtyTwo(StrategyId::kPrimaryFirst);
  const RunRecord record = Run(config);
  ASSERT_EQ(record.outcome, Outcome::kComplete) << record.diagnosis;
  EXPECT_EQ(record.smt_control, "on");
  int64_t last_primary = 0;
  int64_t first_sibling = INT64_MAX;
  for (const Event& event : record.events) {
    if (event.name == TraceEvent::kAlive &&
        config.topology.places[static_cast<size_t>(event.cpu)].thread == 0) {
      last_primary = event.t_ns;
    }
    if (event.name == TraceEvent::kKickBegin && config.topology.places[event.target].thread != 0) {
      first_sibling = std::min(first_sibling, event.t_ns);
    }
  }
  EXPECT_GT(last_primary, 0);
  EXPECT_LT(last_primary, first_sibling);
  EXPECT_LT(first_sibling, INT64_MAX);
}

TEST_P(GuestCase, G3WithoutSmtOnlyThePrimariesComeUp) {
  for (const StrategyId strategy : kAllStrategies) {
    SCOPED_TRACE(sequence::BaseName(strategy));
    RunConfig config = ThirtyTwo(strategy);
    config.smt = false;
    std::erase_if(config.order,
                  [&](uint32_t cpu) { return config.topology.places[cpu].thread != 0; });
    config.scenario = abi::Scenario::kIpiAll;
    const RunRecord record = Run(config);
    EXPECT_EQ(record.outcome, Outcome::kComplete) << record.diagnosis;
    EXPECT_EQ(record.cpus_online, 16u);
    EXPECT_EQ(record.cpus_wanted, 16u);
    EXPECT_EQ(record.cpus_offered, 32u);
    EXPECT_EQ(record.smt_control, "off");
    EXPECT_EQ(record.counters.at("guest.ipi_answers"), 15u);
    for (const CpuFinal& cpu : record.cpus) {
      EXPECT_EQ(cpu.online, config.topology.places[cpu.cpu.value].thread == 0) << cpu.cpu.value;
      EXPECT_EQ(cpu.wanted, cpu.online);
    }
  }
}

// How long an AP must be late to be given up: one handshake's time where its CPU is waited for by
// itself, two or three where the bound is begun anew while others arrive and after a second chance.
uint32_t BoundsUntilGivenUp(StrategyId strategy) {
  if (strategy == StrategyId::kTree) return 3;
  return sequence::MakeStrategy(strategy).ApsRunOnTheirOwn() ? 2 : 1;
}

TEST_P(GuestCase, G4AnApThatFreezesIsGivenUpParksAndComesUpAtItsRetry) {
  for (const StrategyId strategy : kAllStrategies) {
    if (on_kvm() && strategy != StrategyId::kSerial && strategy != StrategyId::kKick) continue;
    SCOPED_TRACE(sequence::BaseName(strategy));
    RunConfig config = SimulatedConfig(8, strategy);
    config.scenario = abi::Scenario::kIpiAll;
    config.retry = true;
    // It comes in the middle between being given up and the end of the time that its retry gives
    // it.
    config.knobs.handshake_timeout_ms = on_kvm() ? 2'000 : 10'000;
    const uint64_t late_ms = config.knobs.handshake_timeout_ms * BoundsUntilGivenUp(strategy) +
                             config.knobs.handshake_timeout_ms / 2;
    config.fault = {.kind = Fault::kLate, .cpu = 5, .value = late_ms};
    const RunRecord record = Run(config);
    ASSERT_EQ(record.outcome, Outcome::kComplete) << record.diagnosis;
    EXPECT_EQ(record.counters.at("guest.ipi_answers"), 7u);

    const auto cancelled = TimesOf(record, 5, TraceEvent::kCancelled);
    const auto parked = TimesOf(record, 5, TraceEvent::kParked);
    const auto alive = TimesOf(record, 5, TraceEvent::kAlive);
    ASSERT_EQ(cancelled.size(), 1u);
    ASSERT_EQ(parked.size(), 1u);
    ASSERT_EQ(alive.size(), 1u);
    const auto retry = TimesOf(record, 0, TraceEvent::kRetry);
    ASSERT_EQ(retry.size(), 1u);
    EXPECT_GT(retry[0], parked[0]);
    EXPECT_GT(alive[0], parked[0]) << "it is alive in its second life only";
    EXPECT_EQ(TimesOf(record, 5, TraceEvent::kFirstInstruction).size(), 2u);
    EXPECT_TRUE(record.cpus[5].retried);
    EXPECT_EQ(record.cpus[5].first_error, static_cast<uint32_t>(abi::GuestError::kTimeoutAlive));
    EXPECT_EQ(record.cpus[5].error, 0u);
    for (int32_t cpu = 1; cpu < 8; ++cpu) {
      SCOPED_TRACE(cpu);
      EXPECT_EQ(TimesOf(record, cpu, TraceEvent::kOnline).size(), 1u);
      if (cpu == 5) continue;
      EXPECT_FALSE(record.cpus[static_cast<size_t>(cpu)].retried);
      EXPECT_EQ(TimesOf(record, cpu, TraceEvent::kFirstInstruction).size(), 1u);
      EXPECT_LT(TimesOf(record, cpu, TraceEvent::kOnline)[0], retry[0]);
    }
  }
}

TEST_P(GuestCase, G5ACpuThatFailsLeavesTheHigherNumbersServed) {
  for (const StrategyId strategy : {StrategyId::kSerial, StrategyId::kKick, StrategyId::kFull}) {
    SCOPED_TRACE(sequence::BaseName(strategy));
    RunConfig config = SimulatedConfig(8, strategy);
    config.scenario = abi::Scenario::kIpiAll;
    config.fault = {.kind = Fault::kNoStart, .cpu = 3, .value = 0};
    config.knobs.handshake_timeout_ms = 1'000;
    const RunRecord record = Run(config);
    ASSERT_EQ(record.outcome, Outcome::kPartial) << record.diagnosis;
    EXPECT_EQ(record.cpus_online, 7u);
    EXPECT_FALSE(record.cpus[3].online);
    EXPECT_EQ(record.counters.at("guest.ipi_answers"), 6u);
    // Each by an IPI of its own: none is left out, and the lost one is not asked.
    std::vector<uint16_t> asked;
    for (const Event& event : record.events) {
      if (event.name == TraceEvent::kIcrWrite && (event.value & 0xff) == abi::kCallVector) {
        asked.push_back(event.target);
      }
    }
    EXPECT_EQ(asked, (std::vector<uint16_t>{1, 2, 4, 5, 6, 7}));
  }
}

TEST_P(GuestCase, ARetryOfACpuThatNeverStartsFailsWithinItsBoundAndIsReported) {
  RunConfig config = SimulatedConfig(4, StrategyId::kSerial);
  config.retry = true;
  config.fault = {.kind = Fault::kNoStart, .cpu = 2, .value = 0};
  config.knobs.handshake_timeout_ms = 500;
  const RunRecord record = Run(config);
  EXPECT_EQ(record.outcome, Outcome::kPartial) << record.diagnosis;
  EXPECT_EQ(record.cpus_online, 3u);
  EXPECT_TRUE(record.cpus[2].retried);
  EXPECT_NE(record.cpus[2].error, 0u);
  EXPECT_NE(record.cpus[2].first_error, 0u);
  // It may have been on its way, so its second try has no INIT.
  EXPECT_EQ(record.counters.at("guest.inits"), 3u);
  EXPECT_EQ(record.counters.at("guest.startups"), 8u);
}

INSTANTIATE_TEST_SUITE_P(On, GuestCase, ::testing::Values(MachineKind::kSim, MachineKind::kKvm),
                         [](const auto& param_info) {
                           return param_info.param == MachineKind::kSim ? "sim" : "kvm";
                         });

}  // namespace
}  // namespace sipi
