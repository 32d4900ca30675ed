// Case G8 by exhaustive search: one expedited grace period against a CPU's way off and on, three
// CPUs in two leaves, met at every state of that way; every schedule with one preemption.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "vmm/explore/exhaustive.h"
#include "vmm/explore/rcu_case.h"

namespace sipi {
namespace {

// SIPI_G8_PREEMPTIONS=2 takes an hour; =1 walks every meeting with a store buffer too, otherwise
// every fourth.
uint32_t Preemptions() {
  const char* const given = std::getenv("SIPI_G8_PREEMPTIONS");
  return given != nullptr ? static_cast<uint32_t>(std::strtoul(given, nullptr, 10)) : 1;
}

void WalkAll(bool store_buffer) {
  const std::atomic<bool> go{false};
  uint64_t schedules = 0;
  uint32_t index = 0;
  const bool all = !store_buffer || std::getenv("SIPI_G8_PREEMPTIONS") != nullptr;
  for (const uint64_t met_at : kMeetings) {
    if (index++ % 4 != 0 && !all) continue;
    ExhaustivePlan plan;
    plan.space.cpus = 3;
    plan.space.scenario = ExploreScenario::kRcu;
    plan.met_at = met_at;
    plan.preemptions = Preemptions();
    plan.store_buffer = store_buffer;
    const ExhaustiveResult result = RunExhaustive(plan, go, nullptr);
    EXPECT_EQ(result.wrong, "") << MetAt(met_at) << ": "
                                << ChoicesText(result.failing.value_or(ChoiceList{}));
    EXPECT_TRUE(result.complete) << MetAt(met_at);
    EXPECT_GT(result.schedules, 50u) << MetAt(met_at);  // they did meet
    schedules += result.schedules;
  }
  std::printf("%llu schedules\n", static_cast<unsigned long long>(schedules));
}

TEST(ExpeditedAgainstHotplug, NoScheduleEndsEarlyOrWaitsForADeadCpu) { WalkAll(false); }
TEST(ExpeditedAgainstHotplug, NorWithAStoreBuffer) { WalkAll(true); }

}  // namespace
}  // namespace sipi
