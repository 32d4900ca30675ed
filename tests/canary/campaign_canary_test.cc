// Campaigns that find something: where they end, and where they go on.
#include <gtest/gtest.h>

#include "vmm/explore/campaign.h"

namespace sipi {
namespace {

CampaignPlan FailingPlan(uint32_t jobs, uint32_t max_failures) {
  CampaignPlan plan;
  plan.space.canary = 14;
  plan.schedules = 3'000;
  plan.jobs = jobs;
  plan.max_failures = max_failures;
  return plan;
}

// A campaign that ended since enough had failed goes on behind that.
TEST(Canary, ACampaignThatFailedGoesOnBehindItsFailures) {
  const std::atomic<bool> go{false};
  CampaignState whole;
  ASSERT_TRUE(RunCampaign(FailingPlan(2, 1'000'000), go, nullptr, whole).ok());
  ASSERT_GT(whole.failures.size(), 20u);
  for (const uint32_t jobs : {1u, 4u}) {
    CampaignState state;
    uint64_t calls = 0;
    while (state.done < 3'000) {
      const size_t before = state.failures.size();
      const uint64_t done_before = state.done;
      ASSERT_TRUE(RunCampaign(FailingPlan(jobs, 5), go, nullptr, state).ok());
      ASSERT_TRUE(state.failures.size() >= before + 5 || state.done == 3'000);
      if (jobs == 1) {
        EXPECT_LE(state.failures.size(), before + 5);
      }
      ASSERT_GT(state.done, done_before);
      ++calls;
    }
    EXPECT_GT(calls, 1u) << jobs;
    ASSERT_EQ(state.failures.size(), whole.failures.size()) << jobs;
    for (size_t i = 0; i < whole.failures.size(); ++i) {
      EXPECT_EQ(state.failures[i].seed, whole.failures[i].seed);
      EXPECT_EQ(state.failures[i].wrong, whole.failures[i].wrong);
    }
  }
}

// What has been looked at counts, to the schedule: one thread ends behind the seed that failed.
TEST(Canary, ACampaignsDoneIsBehindTheFailureThatEndedIt) {
  const std::atomic<bool> go{false};
  CampaignState state;
  ASSERT_TRUE(RunCampaign(FailingPlan(1, 1), go, nullptr, state).ok());
  ASSERT_EQ(state.failures.size(), 1u);
  EXPECT_EQ(state.done, state.failures[0].seed);  // seeds count from 1
  for (const uint32_t jobs : {1u, 3u}) {
    CampaignState again = state;
    ASSERT_TRUE(RunCampaign(FailingPlan(jobs, 1), go, nullptr, again).ok());
    ASSERT_GE(again.failures.size(), 2u);
    EXPECT_GE(again.done, again.failures[1].seed);
  }
}

}  // namespace
}  // namespace sipi
