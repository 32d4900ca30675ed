// Timelines of simulated runs that are longer than anybody has planned for.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/sim/simulated.h"
#include "vmm/load/params.h"

namespace sipi {
namespace {

// Every switch of threads is traced, for which no ring is planned.
TEST(SpareRecords, ATimelineLongerThanItsRingsIsWhole) {
  RunConfig config = SimulatedConfig(4, sequence::StrategyId::kFull);
  config.kernel.services = 1;
  config.kernel.trace_threads = 1;
  config.scenario = abi::Scenario::kRefScale;
  config.scenario_knobs.rounds = 3000;
  const RunRecord record = RunIt(config);
  EXPECT_EQ(record.outcome, Outcome::kComplete) << record.diagnosis;
  EXPECT_EQ(record.lost_events, 0u);
  EXPECT_EQ(CountOf(record, abi::TraceEvent::kRefPoint), 3000u);
  const auto of_cpu_1 =
      std::count_if(record.events.begin(), record.events.end(), [](const Event& event) {
        return event.cpu == 1 && event.name < abi::TraceEvent::kHostFirst;
      });
  EXPECT_GT(of_cpu_1, int64_t{PlanSimulatedArena(NeedsOf(config)).percpu_ring_records});
}

}  // namespace
}  // namespace sipi
