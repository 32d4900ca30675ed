// Exploring RCU and hotplug finds every broken variant of them: each within a bounded campaign of
// random schedules, those that concern expedited grace periods against hotplug by the exhaustive
// walk of case G8.
#include <gtest/gtest.h>

#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "canary.h"
#include "vmm/explore/exhaustive.h"
#include "vmm/explore/explorer.h"
#include "vmm/explore/rcu_case.h"

namespace sipi {
namespace {

constexpr uint64_t kSchedules = 20'000;

// Found by the walk of G8 below; a campaign seldom has what they need.
bool NeedsTheWalk(const CanaryName& canary) { return canary.number == 103 || canary.number == 110; }

class RcuCanaryOf : public testing::TestWithParam<CanaryName> {};

TEST_P(RcuCanaryOf, IsFoundByACampaignOfBoundedSize) {
  const CanaryName& canary = GetParam();
  Explorer explorer;
  ExploreSpace space;
  space.scenario = ExploreScenario::kRcu;
  space.canary = canary.number;
  std::string wrong;
  uint64_t seed = 0;
  while (wrong.empty() && ++seed <= kSchedules) wrong = explorer.Run(CaseOf(seed, space));
  EXPECT_FALSE(wrong.empty()) << canary.number << ", " << canary.name << ", was not found";
  std::printf("%3u %-52s %9llu  %.80s\n", canary.number, canary.name,
              static_cast<unsigned long long>(seed), wrong.c_str());
  std::fflush(stdout);
}

std::vector<CanaryName> OfTheCampaign() {
  std::vector<CanaryName> canaries;
  for (const CanaryName& canary : kRcuCanaries) {
    if (!NeedsTheWalk(canary)) canaries.push_back(canary);
  }
  return canaries;
}

INSTANTIATE_TEST_SUITE_P(, RcuCanaryOf, testing::ValuesIn(OfTheCampaign()),
                         [](const auto& its) { return std::to_string(its.param.number); });

TEST(RcuCanary, TheWalkOfG8FindsASelectionWithoutTheRetry) {
  const std::atomic<bool> go{false};
  std::set<uint32_t> found;
  for (const CanaryName& canary : kRcuCanaries) {
    if (!NeedsTheWalk(canary)) continue;
    for (const uint64_t met_at : kMeetings) {
      ExhaustivePlan plan;
      plan.space.cpus = 3;
      plan.space.scenario = ExploreScenario::kRcu;
      plan.space.canary = canary.number;
      plan.met_at = met_at;
      plan.preemptions = 1;
      const ExhaustiveResult result = RunExhaustive(plan, go, nullptr);
      if (!result.failing) continue;
      std::printf("%3u %-52s met at %s, %llu: %.60s\n", canary.number, canary.name,
                  MetAt(met_at).c_str(), static_cast<unsigned long long>(result.schedules),
                  result.wrong.c_str());
      found.insert(canary.number);
      break;
    }
  }
  EXPECT_EQ(found, (std::set<uint32_t>{103, 110}));
}

TEST(RcuCanary, TheSameBuildWithoutOneFindsNothing) {
  Explorer explorer;
  ExploreSpace space;
  space.scenario = ExploreScenario::kRcu;
  for (uint64_t seed = 1; seed <= 3'000; ++seed) {
    const ExploreCase explored = CaseOf(seed, space);
    const std::string wrong = explorer.Run(explored);
    ASSERT_EQ(wrong, "") << Describe(explored) << "\n" << explorer.Trace(explored, 40);
  }
}

}  // namespace
}  // namespace sipi
