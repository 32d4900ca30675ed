// Simulated runs whose time is up.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/sim/simulated.h"

namespace sipi {
namespace {

TEST(CutShort, ATortureHasCountedWhatItDid) {
  RunConfig config = SimulatedConfig(3, sequence::StrategyId::kFull);
  config.kernel.services = 1;
  config.scenario = abi::Scenario::kTorture;
  config.scenario_knobs.duration_ms = 10'000;
  config.time_limit_ms = 300;
  const RunRecord record = RunIt(config);
  ASSERT_EQ(record.outcome, Outcome::kTimeLimit) << record.diagnosis;
  const abi::TortureCounters& counters = record.services->counters;
  EXPECT_GT(counters.reads, 100u);
  EXPECT_EQ(counters.reads,
            std::accumulate(std::begin(counters.pipe), std::end(counters.pipe), uint64_t{0}));
  EXPECT_GT(counters.updates, 10u);
  EXPECT_GT(counters.offline_ok, 0u);
  EXPECT_GT(counters.freed[0], 0u);
  EXPECT_GT(counters.gp_seq_end, counters.gp_seq_begin);
  EXPECT_GT(counters.exp_seq_end, counters.exp_seq_begin);
  EXPECT_GT(counters.callbacks_run, 0u);
  EXPECT_GE(counters.callbacks_queued, counters.callbacks_run);
  EXPECT_EQ(counters.failures, 0u);
}

}  // namespace
}  // namespace sipi
