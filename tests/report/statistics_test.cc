#include "vmm/timeline/statistics.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace sipi {
namespace {

TEST(Statistics, OfNothingIsNothing) { EXPECT_FALSE(Summarize({}).has_value()); }

TEST(Statistics, OfOneSampleIsThatSample) {
  const Summary s = Summarize({42}).value();
  EXPECT_EQ(s.count, 1u);
  EXPECT_EQ(s.min, 42);
  EXPECT_EQ(s.lower_quartile, 42);
  EXPECT_EQ(s.median, 42);
  EXPECT_EQ(s.upper_quartile, 42);
  EXPECT_EQ(s.max, 42);
}

TEST(Statistics, OddCountTakesTheMiddleWhateverTheOrder) {
  const Summary s = Summarize({50, 10, 30, 20, 40}).value();
  EXPECT_EQ(s.min, 10);
  EXPECT_EQ(s.lower_quartile, 20);
  EXPECT_EQ(s.median, 30);
  EXPECT_EQ(s.upper_quartile, 40);
  EXPECT_EQ(s.max, 50);
}

TEST(Statistics, EvenCountInterpolates) {
  const Summary s = Summarize({10, 20, 30, 40}).value();
  EXPECT_EQ(s.lower_quartile, 18);  // 17.5
  EXPECT_EQ(s.median, 25);
  EXPECT_EQ(s.upper_quartile, 33);  // 32.5
}

TEST(Statistics, LargeValuesKeepTheirDigits) {
  constexpr int64_t kLarge = int64_t{1} << 60;
  EXPECT_EQ(Summarize({kLarge + 1, kLarge + 3})->median, kLarge + 2);
}

}  // namespace
}  // namespace sipi
