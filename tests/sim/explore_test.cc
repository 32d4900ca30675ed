// Exploration of the right code, and its campaigns: split, stopped, resumed, merged.
#include <gtest/gtest.h>

#include <set>

#include "vmm/explore/campaign.h"
#include "vmm/explore/explorer.h"

namespace sipi {
namespace {

CampaignPlan SmallPlan() {
  CampaignPlan plan;
  plan.schedules = 3'000;
  plan.jobs = 2;
  return plan;
}

TEST(Explore, TwentyThousandSchedulesOfTheRightCodeFindNothing) {
  Explorer explorer;
  for (uint64_t seed = 1; seed <= 20'000; ++seed) {
    const ExploreCase explored = CaseOf(seed, {});
    ASSERT_EQ(explorer.Run(explored), "") << Describe(explored);
  }
}

TEST(Explore, EveryStrategyAndKindOfTroubleIsDrawn) {
  std::set<sequence::StrategyId> strategies;
  std::set<uint32_t> sizes;
  uint64_t harmless = 0;
  uint64_t buffered = 0;
  uint64_t lying = 0;
  for (uint64_t seed = 1; seed <= 2'000; ++seed) {
    const ExploreCase drawn = CaseOf(seed, {});
    strategies.insert(drawn.config.strategy.id);
    sizes.insert(drawn.config.cpus);
    buffered += drawn.chaos.store_buffer ? 1u : 0u;
    lying += drawn.firmware_lies ? 1u : 0u;
    harmless += drawn.chaos.dead_ap == sim::Rate::kOff && !drawn.doomed_cpu ? 1u : 0u;
  }
  EXPECT_EQ(strategies.size(), size_t{sequence::kStrategyCount});
  EXPECT_EQ(sizes, (std::set<uint32_t>{2, 3, 4, 5, 8}));
  EXPECT_GT(buffered, 800u);
  EXPECT_GT(lying, 20u);
  EXPECT_GT(harmless, 1'000u);
}

TEST(Explore, ACaseDependsOnItsSeedAndWhatIsHeldFixed) {
  EXPECT_EQ(Describe(CaseOf(7, {})), Describe(CaseOf(7, {})));
  EXPECT_NE(Describe(CaseOf(7, {})), Describe(CaseOf(8, {})));
  ExploreSpace space;
  space.cpus = 3;
  space.strategy = sequence::StrategyId::kTree;
  space.faults = false;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const ExploreCase drawn = CaseOf(seed, space);
    EXPECT_EQ(drawn.config.cpus, 3u);
    EXPECT_EQ(drawn.config.strategy.id, sequence::StrategyId::kTree);
    EXPECT_EQ(drawn.chaos.lost_sipi, sim::Rate::kOff);
    EXPECT_FALSE(drawn.doomed_cpu.has_value());
  }
}

TEST(Campaign, ShardsDoEverythingOnce) {
  for (const uint32_t shards : {1u, 3u, 7u}) {
    uint64_t sum = 0;
    for (uint32_t shard = 1; shard <= shards; ++shard) {
      sum += SchedulesOfShard(1000, shard, shards);
    }
    EXPECT_EQ(sum, 1000u);
  }
  EXPECT_EQ(SchedulesOfShard(10, 1, 3), 4u);
  EXPECT_EQ(SchedulesOfShard(10, 3, 3), 3u);
}

TEST(Campaign, RunsToItsEndAndCanBeStopped) {
  CampaignState state;
  const std::atomic<bool> go{false};
  EXPECT_TRUE(RunCampaign(SmallPlan(), go, nullptr, state).ok());
  EXPECT_EQ(state.done, 3'000u);
  EXPECT_TRUE(state.failures.empty()) << state.failures[0].wrong;

  CampaignState stopped;
  const std::atomic<bool> stop{true};
  EXPECT_TRUE(RunCampaign(SmallPlan(), stop, nullptr, stopped).ok());
  EXPECT_LT(stopped.done, 3'000u);
}

TEST(Campaign, GoesOnWhereItsStateSays) {
  CampaignPlan plan = SmallPlan();
  plan.shard = 2;
  plan.shards = 2;
  CampaignState state;
  state.schedules = plan.schedules;
  state.shard = 2;
  state.shards = 2;
  state.done = 1'499;
  state.failures.push_back({42, "as it was"});
  absl::StatusOr<CampaignState> read = ParseState(StateJson(state), "state.json");
  ASSERT_TRUE(read.ok()) << read.status();
  plan.max_failures = 10;
  const std::atomic<bool> go{false};
  EXPECT_TRUE(RunCampaign(plan, go, nullptr, *read).ok());
  EXPECT_EQ(read->done, 1'500u);
  ASSERT_EQ(read->failures.size(), 1u);
  EXPECT_EQ(read->failures[0].wrong, "as it was");
  const std::string table = MergeTable({*read});
  EXPECT_NE(table.find("1 of 2 shards, 1500 of 1500 schedules done, 1 failures"), std::string::npos)
      << table;
}

TEST(Campaign, AFileThatIsNoStateIsRefused) {
  for (const char* text : {"", "{}", "[1]", "{\"schema\":\"sipi.run/1\"}"}) {
    const absl::StatusOr<CampaignState> state = ParseState(text, "x.json");
    ASSERT_FALSE(state.ok());
    EXPECT_EQ(state.status().message().substr(0, 7), "x.json:");
  }
}

}  // namespace
}  // namespace sipi
