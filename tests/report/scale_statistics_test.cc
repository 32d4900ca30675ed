#include "vmm/timeline/scale_statistics.h"

#include <gtest/gtest.h>

#include <numeric>

namespace sipi {
namespace {

std::vector<int64_t> UpTo(int64_t n) {
  std::vector<int64_t> values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), 1);
  return values;
}

// int(n * percent / 100), from 1, at least 1.
TEST(RankPercentile, IsTheScriptsRule) {
  EXPECT_EQ(RankPercentile(UpTo(100), 50), 50);
  EXPECT_EQ(RankPercentile(UpTo(100), 99), 99);
  EXPECT_EQ(RankPercentile(UpTo(199), 90), 179);
  EXPECT_EQ(RankPercentile(UpTo(10), 99), 9);
  EXPECT_EQ(RankPercentile(UpTo(3), 50), 1);
  EXPECT_EQ(RankPercentile(UpTo(1), 50), 1);  // int(0.5) is 0, but the least is 1
  EXPECT_EQ(RankPercentile(UpTo(1), 99), 1);
}

TEST(ScaleStatistics, NothingOfNothing) { EXPECT_FALSE(ScaleStatisticsOf({}).has_value()); }

TEST(ScaleStatistics, MicrosecondsOfUnsortedNanoseconds) {
  const auto figures = ScaleStatisticsOf({9'000, 1'000, 2'500, 3'500});
  ASSERT_TRUE(figures.has_value());
  EXPECT_DOUBLE_EQ(figures->average_us, 4.0);
  EXPECT_DOUBLE_EQ(figures->minimum_us, 1.0);
  EXPECT_DOUBLE_EQ(figures->p50_us, 2.5);
  EXPECT_DOUBLE_EQ(figures->p90_us, 3.5);
  EXPECT_DOUBLE_EQ(figures->maximum_us, 9.0);
}

// 10^int(log10(p90) + 0.5) / 100.
TEST(ScaleStatistics, BucketFollowsTheNinetiethPercentile) {
  const auto bucket = [](int64_t ns) { return ScaleStatisticsOf({ns})->bucket_us; };
  EXPECT_DOUBLE_EQ(bucket(8'000'000), 100);  // 8,000 us: 10^4 / 100
  EXPECT_DOUBLE_EQ(bucket(3'000'000), 10);   // 3,000 us: 10^3 / 100
  EXPECT_DOUBLE_EQ(bucket(100'000), 1);
  EXPECT_DOUBLE_EQ(bucket(1'500), 0.01);
}

TEST(ScaleStatistics, HistogramCountsEveryMeasurementOnce) {
  const auto figures = ScaleStatisticsOf({100'000, 100'400, 101'000, 250'000});
  ASSERT_DOUBLE_EQ(figures->bucket_us, 1);
  EXPECT_EQ(figures->histogram, (std::map<int64_t, uint64_t>{{100, 2}, {101, 1}, {250, 1}}));
}

TEST(AwkNumber, WholeNumbersAreWholeOthersHaveSixDigits) {
  EXPECT_EQ(AwkNumber(8000), "8000");
  EXPECT_EQ(AwkNumber(12345678), "12345678");
  EXPECT_EQ(AwkNumber(8057.125), "8057.12");
  EXPECT_EQ(AwkNumber(0.1), "0.1");
  EXPECT_EQ(AwkNumber(31.25), "31.25");
}

}  // namespace
}  // namespace sipi
