// CPUs that do not come back, in kernels with services.
#include <gtest/gtest.h>

#include "tests/sim/simulated.h"

namespace sipi {
namespace {

using abi::TraceEvent;

// It has gone off and does not come back: the next one has its turn.
TEST(HotplugScenario, ACpuThatDoesNotComeBackIsNoPanic) {
  RunConfig config = SimulatedConfig(3, sequence::StrategyId::kFull);
  config.kernel.services = 1;
  config.scenario = abi::Scenario::kHotplug;
  config.fault = {.kind = abi::Fault::kLostInit, .cpu = 1, .value = 0};
  config.knobs.handshake_timeout_ms = 100;
  const RunRecord record = RunIt(config);
  EXPECT_EQ(record.outcome, Outcome::kPartial) << record.diagnosis;
  EXPECT_FALSE(record.cpus[1].online);
  uint32_t moves_of_2 = 0;
  for (const Event& event : record.events) {
    if (event.name == TraceEvent::kHotplugEnd && event.target == 2) {
      ++moves_of_2;
      EXPECT_EQ(event.value, 0u);
    }
  }
  EXPECT_EQ(moves_of_2, 2u);
}

}  // namespace
}  // namespace sipi
