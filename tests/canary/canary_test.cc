// The explorer finds every broken variant of bring-up, within a bounded campaign. A campaign that
// finds none would look like a right kernel.
#include "canary.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "vmm/explore/explorer.h"

namespace sipi {
namespace {

constexpr uint64_t kSchedules = 400'000;

TEST(Canary, EachIsFoundByACampaignOfBoundedSize) {
  Explorer explorer;
  std::printf("%-48s schedules  what was seen\n", "canary");
  for (const CanaryName& canary : kCanaries) {
    ExploreSpace space;
    space.canary = canary.number;
    std::string wrong;
    uint64_t seed = 0;
    while (wrong.empty() && ++seed <= kSchedules) wrong = explorer.Run(CaseOf(seed, space));
    EXPECT_FALSE(wrong.empty()) << canary.name << " was not found in " << kSchedules;
    if (wrong.empty()) continue;
    std::printf("%-48s %9llu  %.70s\n", canary.name, static_cast<unsigned long long>(seed),
                wrong.c_str());
  }
}

TEST(Canary, TheSameBuildWithoutOneFindsNothing) {
  Explorer explorer;
  for (uint64_t seed = 1; seed <= 5'000; ++seed) {
    const ExploreCase explored = CaseOf(seed, {});
    ASSERT_EQ(explorer.Run(explored), "") << Describe(explored);
  }
}

TEST(Canary, AFailingSeedFailsAgainAndIsMadeSmall) {
  ExploreSpace space;
  space.canary = 14;
  Explorer explorer;
  uint64_t seed = 1;
  while (explorer.Run(CaseOf(seed, space)).empty()) ++seed;
  const ExploreCase found = CaseOf(seed, space);
  const std::string wrong = explorer.Run(found);
  EXPECT_EQ(explorer.Run(found), wrong);
  std::string small_wrong;
  const ExploreCase small = explorer.Shrink(found, &small_wrong);
  EXPECT_FALSE(small_wrong.empty());
  EXPECT_LE(small.config.cpus, found.config.cpus);
  EXPECT_EQ(explorer.Run(small), small_wrong);
}

}  // namespace
}  // namespace sipi
