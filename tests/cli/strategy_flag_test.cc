#include "vmm/cli/strategy_flag.h"

#include <gtest/gtest.h>

#include <set>

#include "vmm/timeline/strategy_name.h"

namespace sipi {
namespace {

using sequence::StrategyId;

TEST(ParseStrategy, KickPlusWaitIsAName) {
  const auto strategy = ParseStrategy("--strategy", "kick+wait");
  ASSERT_TRUE(strategy.ok());
  EXPECT_EQ(strategy->id, StrategyId::kKickWait);
  EXPECT_EQ(strategy->pass_count, 3);
  EXPECT_EQ(strategy->reuse_calibration, 0);
}

TEST(ParseStrategy, SuffixesCombineInAnyOrder) {
  const auto strategy = ParseStrategy("--strategy", "kick+wait+overlap+reuse");
  ASSERT_TRUE(strategy.ok());
  EXPECT_EQ(strategy->id, StrategyId::kKickWait);
  EXPECT_EQ(strategy->reuse_calibration, 1);
  EXPECT_EQ(strategy->overlap, 1);
  EXPECT_EQ(StrategyName(*strategy), "kick+wait+reuse+overlap");
}

TEST(ParseStrategy, EveryNameComesBack) {
  const auto all = ParseStrategyList("--strategies", "all");
  ASSERT_TRUE(all.ok());
  std::set<std::string> names;
  for (const sequence::Strategy& strategy : *all) {
    const std::string name = StrategyName(strategy);
    names.insert(name);
    EXPECT_EQ(StrategyName(ParseStrategy("--strategy", name).value()), name);
  }
  EXPECT_EQ(names.size(), 28u);
}

TEST(ParseStrategy, RefusesUnknownNamesAndSuffixes) {
  EXPECT_EQ(ParseStrategy("--strategy", "seriel+reuse").status().message(),
            "--strategy: there is no 'seriel'; did you mean 'serial'? It takes serial, kick, "
            "kick+wait, primary-first, full, broadcast or tree");
  EXPECT_EQ(
      ParseStrategy("--strategy", "full+resue").status().message(),
      "--strategy: in 'full+resue' there is no suffix '+resue'; give +reuse, +overlap or both");
  EXPECT_FALSE(ParseStrategy("--strategy", "full+reuse+reuse").ok());
  EXPECT_FALSE(ParseStrategy("--strategy", "full+").ok());
  EXPECT_FALSE(ParseStrategy("--strategy", "").ok());
  EXPECT_FALSE(ParseStrategy("--strategy", "+reuse").ok());
  EXPECT_FALSE(ParseStrategy("--strategy", "kicked").ok());
}

TEST(ParseStrategyList, RefusesTheSameTwice) {
  EXPECT_EQ(
      ParseStrategyList("--strategies", "kick+reuse+overlap,kick+overlap+reuse").status().message(),
      "--strategies: kick+reuse+overlap is given twice; name it once");
}

}  // namespace
}  // namespace sipi
