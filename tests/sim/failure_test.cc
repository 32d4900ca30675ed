// Cases A13, G1, G2 and G4 in the simulator: lost messages, firmware that lies, 64 APs in the
// trampoline, an AP that comes too late.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/sim/simulated.h"

namespace sipi {
namespace {

using abi::Fault;
using abi::TraceEvent;
using sequence::StrategyId;

RunConfig WithFault(uint32_t cpus, StrategyId strategy, Fault kind, uint32_t cpu,
                    uint64_t value = 0) {
  RunConfig config = SimulatedConfig(cpus, strategy);
  config.fault.kind = kind;
  config.fault.cpu = cpu;
  config.fault.value = value;
  return config;
}

// All but `missing` are online, and that one is named.
void ExpectOnlyMissing(const RunRecord& record, uint32_t missing) {
  ASSERT_EQ(record.outcome, Outcome::kPartial) << record.diagnosis;
  EXPECT_EQ(record.cpus_online, record.cpus_offered - 1);
  EXPECT_FALSE(record.cpus[missing].online);
  EXPECT_NE(record.diagnosis.find("CPU " + std::to_string(missing) + " "), std::string::npos)
      << record.diagnosis;
}

TEST(Failure, A13OneLostSipiIsNotFelt) {
  for (const StrategyId strategy : kAllStrategies) {
    const RunRecord whole = RunIt(SimulatedConfig(64, strategy));
    for (const Fault fault : {Fault::kLostSipi1, Fault::kLostSipi2, Fault::kLostInit}) {
      const RunRecord record = RunIt(WithFault(64, strategy, fault, 33));
      EXPECT_EQ(record.outcome, Outcome::kComplete) << record.diagnosis;
      EXPECT_LT(record.events.back().t_ns, whole.events.back().t_ns + 100'000);
      EXPECT_EQ(record.counters.at("startup.dropped"), 1u);
    }
  }
}

TEST(Failure, A13AnApWithoutAnySipiIsNamedAndTheOthersGoOn) {
  for (const StrategyId strategy : kAllStrategies) {
    const RunRecord record = RunIt(WithFault(64, strategy, Fault::kLostSipis, 33));
    ExpectOnlyMissing(record, 33);
    EXPECT_GE(record.events.back().t_ns, 10'000'000'000) << "the bound of the handshake";
    EXPECT_LE(record.events.back().t_ns, 31'000'000'000);
  }
}

TEST(Failure, G1AnApWhoseFirmwareLiesParksIfItTakesItsIdFromCpuid) {
  for (const StrategyId strategy : {StrategyId::kKick, StrategyId::kFull}) {
    RunConfig config = SimulatedConfig(20, strategy);
    config.firmware_lies = {17};  // CPUID shows 1, which is another CPU's ID
    config.knobs.handshake_timeout_ms = 100;
    config.knobs.ap_id_source = abi::ApIdSource::kApic;
    EXPECT_EQ(RunIt(config).outcome, Outcome::kComplete);
    config.knobs.ap_id_source = abi::ApIdSource::kCpuidB;
    const RunRecord record = RunIt(config);
    ExpectOnlyMissing(record, 17);
    EXPECT_TRUE(record.cpus[1].online);
    ASSERT_FALSE(record.notes.empty());
    EXPECT_NE(record.notes.back().find("the last: 17"), std::string::npos) << record.notes.back();
  }
}

TEST(Failure, G2SixtyFourApsQueueForTheTrampoline) {
  RunConfig config = SimulatedConfig(65, StrategyId::kBroadcast);
  const RunRecord locked = RunIt(config);
  EXPECT_EQ(locked.outcome, Outcome::kComplete) << locked.diagnosis;
  EXPECT_GE(locked.counters.at("sim.trampoline.waits"), 60u);
  config.knobs.trampoline_lock = 0;
  const RunRecord lockless = RunIt(config);
  EXPECT_EQ(lockless.outcome, Outcome::kComplete) << lockless.diagnosis;
  EXPECT_EQ(lockless.counters.at("sim.trampoline.waits"), 0u);
  // Each waits for all before it, so the last AP is late by the lock's time of all.
  const auto last_alive = [](const RunRecord& record) {
    int64_t last = 0;
    for (int32_t cpu = 1; cpu <= 64; ++cpu) {
      last = std::max(last, TimeOf(record, cpu, TraceEvent::kAlive));
    }
    return last;
  };
  EXPECT_GT(last_alive(locked), last_alive(lockless) + 64 * 4'000);
}

// The lock's line comes from farther where half of those that try are in another package.
TEST(Failure, G2TheTrampolinesLockCostsMoreBetweenPackages) {
  const auto wait_ns = [](const char* topology) {
    const RunRecord record =
        RunIt(WithTopology(SimulatedConfig(0, StrategyId::kBroadcast), topology));
    EXPECT_EQ(record.outcome, Outcome::kComplete) << record.diagnosis;
    return record.counters.at("sim.trampoline.wait_ns");
  };
  const uint64_t one = wait_ns("sockets=1,cores=64"), two = wait_ns("sockets=2,cores=32");
  EXPECT_GT(two, one * 11 / 10);
  EXPECT_LT(two, one * 130 / 60) << "all of them remote";
}

TEST(Failure, G4AnApThatComesAfterItsBoundParksAndDisturbsNobody) {
  RunConfig config = WithFault(8, StrategyId::kSerial, Fault::kLate, 5, 11'000);
  // Something that takes longer than the AP is late: the next AP does not come either.
  config.knobs.handshake_timeout_ms = 10'000;
  config.knobs.kick.init_delay_us = 600'000;
  const RunRecord record = RunIt(config);
  ExpectOnlyMissing(record, 5);
  EXPECT_TRUE(record.cpus[6].online);
  EXPECT_GE(TimeOf(record, 5, TraceEvent::kCancelled), 11'000'000'000);
  EXPECT_GE(TimeOf(record, 5, TraceEvent::kParked), 0);
  EXPECT_EQ(TimeOf(record, 5, TraceEvent::kAlive), -1);
  EXPECT_EQ(record.cpus[5].sync_state, abi::SyncState::kDead);
}

TEST(Failure, EachStepThatFailsIsUndoneAndTheOthersGoOn) {
  for (const StrategyId strategy : {StrategyId::kSerial, StrategyId::kKick}) {
    for (const uint32_t state : {1u, 58u, 82u, 83u, 84u, 147u, 234u}) {
      SCOPED_TRACE(state);
      RunConfig config = WithFault(4, strategy, Fault::kFailStep, 2, state);
      config.knobs.handshake_timeout_ms = 50;
      const RunRecord record = RunIt(config);
      ExpectOnlyMissing(record, 2);
      // The control CPU may find the AP lost in a step of its own, which then fails too.
      const auto injected =
          std::count_if(record.events.begin(), record.events.end(), [state](const Event& event) {
            return event.name == TraceEvent::kStepFailed && event.value == state;
          });
      EXPECT_EQ(injected, 1);
      const std::string named =
          std::string("cpuhp step ") + abi::Name(static_cast<abi::CpuhpState>(state)) + " failed";
      EXPECT_NE(record.diagnosis.find(named), std::string::npos) << record.diagnosis;
    }
  }
}

// However the others come up: nothing of it is left, neither what it did itself nor what was
// prepared for it.
TEST(Failure, ACpuWhoseLastStepFailsEndsWhereItBegan) {
  for (const StrategyId strategy : kAllStrategies) {
    const RunRecord record = RunIt(WithFault(6, strategy, Fault::kFailStep, 2, 234));
    ExpectOnlyMissing(record, 2);
    EXPECT_EQ(record.cpus[2].sync_state, abi::SyncState::kDead) << record.strategy;
    EXPECT_EQ(record.cpus[2].cpuhp_state, abi::CpuhpState::kOffline) << record.strategy;
  }
}

// One whose way down fails is back online at the end, and not missing: whoever asked for the
// operation tells of it.
TEST(Failure, ACpuThatCouldNotGoOffIsOnline) {
  for (const uint64_t state : {17u, 142u}) {  // of the way down only
    SCOPED_TRACE(state);
    RunConfig config = WithTopology(WithFault(8, StrategyId::kFull, Fault::kFailStep, 3, state),
                                    "cores=2,threads=4");
    config.scenario = abi::Scenario::kSmt;
    config.kernel.services = 1;
    config.kernel.hotplug_steps = abi::HotplugSteps::kPseries;
    config.scenario_knobs.approaches = 1;
    config.scenario_knobs.smt_threads = 1;
    const RunRecord record = RunIt(config);
    EXPECT_EQ(record.outcome, Outcome::kComplete) << record.diagnosis;
    EXPECT_TRUE(record.cpus[3].online);
    EXPECT_EQ(record.cpus_online, 8u);
    EXPECT_NE(record.cpus[3].error, 0u);
    const auto failed = [](const Event& event) {
      return event.name == TraceEvent::kStepFailed && event.target == 3;
    };
    EXPECT_TRUE(std::any_of(record.events.begin(), record.events.end(), failed));
  }
}

TEST(Failure, WhatEndsTheMachineIsSaid) {
  const auto outcome = [](Fault fault, uint32_t cpu) {
    return RunIt(WithFault(4, StrategyId::kSerial, fault, cpu));
  };
  EXPECT_EQ(outcome(Fault::kTripleFault, 2).outcome, Outcome::kGuestFault);
  EXPECT_EQ(outcome(Fault::kException, 2).outcome, Outcome::kGuestFault);
  EXPECT_EQ(outcome(Fault::kHaltAll, 0).outcome, Outcome::kAllHalted);
  EXPECT_EQ(outcome(Fault::kHang, 0).outcome, Outcome::kTimeLimit);
  ExpectOnlyMissing(outcome(Fault::kHang, 2), 2);
}

}  // namespace
}  // namespace sipi
