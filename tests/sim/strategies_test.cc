// Every strategy brings every CPU up, at every size.
#include <gtest/gtest.h>

#include "tests/sim/simulated.h"
#include "vmm/timeline/analysis.h"

namespace sipi {
namespace {

using abi::TraceEvent;
using sequence::StrategyId;

void ExpectAllOnline(const RunRecord& record, uint32_t cpus) {
  ASSERT_EQ(record.outcome, Outcome::kComplete) << record.diagnosis;
  EXPECT_EQ(record.cpus_online, cpus);
  EXPECT_EQ(record.lost_events, 0u);
  EXPECT_TRUE(record.notes.empty()) << record.notes[0];
  EXPECT_EQ(CountOf(record, TraceEvent::kOnline), cpus - 1);
  EXPECT_EQ(record.counters.at("inits"), cpus - 1);
  EXPECT_EQ(record.counters.at("startups"), cpus - 1);
}

TEST(Strategies, BringEveryCpuUpAtEachSizeInEachMode) {
  for (const StrategyId strategy : kAllStrategies) {
    for (const uint32_t cpus : {2u, 3u, 64u, 255u}) {
      for (const abi::ApicMode mode : {abi::ApicMode::kX2Apic, abi::ApicMode::kXApic}) {
        SCOPED_TRACE(std::string(sequence::BaseName(strategy)) + " " + std::to_string(cpus));
        RunConfig config = SimulatedConfig(cpus, strategy);
        config.apic_mode = mode;
        ExpectAllOnline(RunIt(config), cpus);
      }
    }
  }
}

TEST(Strategies, OneCpuNeedsNoOther) {
  for (const StrategyId strategy : kAllStrategies) {
    const RunRecord record = RunIt(SimulatedConfig(1, strategy));
    EXPECT_EQ(record.outcome, Outcome::kComplete) << record.diagnosis;
    EXPECT_EQ(record.counters.at("inits.sent"), 0u);
  }
}

TEST(Strategies, FullAt1920And8192Cpus) {
  for (const uint32_t cpus : {1920u, 8192u}) {
    RunConfig config = SimulatedConfig(cpus, StrategyId::kFull);
    config.profile = *LoadProfile("server-128");
    ExpectAllOnline(RunIt(config), cpus);
  }
}

TEST(Strategies, KnobsDoNotStopAnybody) {
  for (const StrategyId strategy : kAllStrategies) {
    RunConfig config = SimulatedConfig(0, strategy);
    config = WithTopology(std::move(config), "sockets=2,cores=3,threads=2");
    config.strategy.reuse_calibration = 1;
    config.strategy.overlap = 1;
    config.knobs.tsc_check = 1;
    config.knobs.tsc_check_us = 50;
    config.knobs.ap_wait = abi::WaitMode::kSpin;
    config.knobs.cache_setup = abi::CacheSetup::kRendezvous;
    config.knobs.topology_update = abi::TopologyUpdate::kLockless;
    config.knobs.reuse_scope = abi::ReuseScope::kCore;
    config.knobs.trampoline_lock = 0;
    config.knobs.ap_id_source = abi::ApIdSource::kCpuidB;
    config.clock_known = true;
    ExpectAllOnline(RunIt(config), 12);
  }
}

// A14: dense CPU numbers whatever the IDs.
TEST(Strategies, A14SparseIdsAndABootCpuWhoseIdIsNotZero) {
  for (const StrategyId strategy : kAllStrategies) {
    RunConfig stride = SimulatedConfig(6, strategy);
    stride.topology = *ParseTopology("cores=6,stride=2", 6);
    RunConfig list = SimulatedConfig(5, strategy);
    ASSERT_TRUE(SetApicIds("7,0,254,256,4095", list.topology).ok());
    for (RunConfig config : {WithTopology(stride, "sockets=3,cores=5,threads=2"), stride, list}) {
      config.scenario = abi::Scenario::kIpiAll;
      const RunRecord record = RunIt(config);
      ExpectAllOnline(record, config.topology.cpu_count());
      for (const CpuFinal& cpu : record.cpus) {
        EXPECT_EQ(cpu.apic_id, config.topology.places[cpu.cpu.value].apic_id);
      }
    }
  }
}

TEST(Strategies, PublishedRatiosOfTheServerComeOut) {
  RunConfig config = WithTopology(SimulatedConfig(0, StrategyId::kSerial),
                                  "sockets=2,cores=32,threads=2,nodes=2,numbering=siblings-last");
  config.profile = *LoadProfile("server-128");
  config.knobs.calibration_us = static_cast<uint32_t>(config.profile.calibration_ns / 1000);
  const auto smpboot = [&config](StrategyId id, uint8_t reuse) {
    config.strategy = sequence::MakeStrategy(id);
    config.strategy.reuse_calibration = reuse;
    return *Analyze(RunIt(config)).smpboot_ns;
  };
  const int64_t serial = smpboot(StrategyId::kSerial, 0);
  const int64_t kick = smpboot(StrategyId::kKick, 0);
  const int64_t kick_reuse = smpboot(StrategyId::kKick, 1);
  // Published: 700, 100 and 30 ms, so 7 and 23 times.
  EXPECT_GT(serial * 10, kick * 56);
  EXPECT_LT(serial * 10, kick * 84);
  EXPECT_GT(serial * 10, kick_reuse * 184);
  EXPECT_LT(serial * 10, kick_reuse * 280);
}

}  // namespace
}  // namespace sipi
