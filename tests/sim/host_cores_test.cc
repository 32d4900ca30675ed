// More vCPUs than cores: what small hosts do to bring-up.
#include <gtest/gtest.h>

#include "tests/sim/simulated.h"
#include "vmm/timeline/analysis.h"

namespace sipi {
namespace {

using abi::TraceEvent;
using sequence::StrategyId;

RunRecord OnTwoCores(StrategyId strategy, abi::WaitMode wait) {
  RunConfig config = SimulatedConfig(32, strategy);
  config.host_cores = 2;
  config.knobs.ap_wait = wait;
  RunRecord record = RunIt(config);
  EXPECT_EQ(record.outcome, Outcome::kComplete) << record.diagnosis;
  return record;
}

int64_t SmpbootNs(const RunRecord& record) { return *Analyze(record).smpboot_ns; }

TEST(HostCores, ParallelIsSlowerThanSerialBecauseWaitingApsSpin) {
  const int64_t serial = SmpbootNs(OnTwoCores(StrategyId::kSerial, abi::WaitMode::kSpin));
  const int64_t spinning = SmpbootNs(OnTwoCores(StrategyId::kKick, abi::WaitMode::kSpin));
  const int64_t halting = SmpbootNs(OnTwoCores(StrategyId::kKick, abi::WaitMode::kHalt));
  EXPECT_GT(spinning, 3 * serial);
  EXPECT_LT(halting, serial + serial / 10);
}

TEST(HostCores, EveryStrategyEndsOnOneCore) {
  for (const StrategyId strategy : kAllStrategies) {
    for (const abi::WaitMode wait : {abi::WaitMode::kHalt, abi::WaitMode::kSpin}) {
      RunConfig config = SimulatedConfig(16, strategy);
      config.host_cores = 1;
      config.knobs.ap_wait = wait;
      config.knobs.tsc_check = 1;
      config.knobs.tsc_check_us = 100;
      const RunRecord record = RunIt(config);
      EXPECT_EQ(record.outcome, Outcome::kComplete)
          << sequence::BaseName(strategy) << ": " << record.diagnosis;
    }
  }
}

TEST(HostCores, AHungCpuTakesItsShareAndNoMore) {
  RunConfig config = SimulatedConfig(4, StrategyId::kSerial);
  config.host_cores = 1;
  config.fault.kind = abi::Fault::kHang;
  config.fault.cpu = 2;
  config.knobs.handshake_timeout_ms = 100;
  const RunRecord record = RunIt(config);
  EXPECT_EQ(record.outcome, Outcome::kPartial) << record.diagnosis;
  EXPECT_EQ(record.cpus_online, 3u);
  EXPECT_GT(record.counters.at("sim.preemptions"), 10u);
}

}  // namespace
}  // namespace sipi
