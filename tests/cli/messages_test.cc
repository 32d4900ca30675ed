#include "vmm/cli/messages.h"

#include <gtest/gtest.h>

namespace sipi {
namespace {

TEST(PerSecond, IsNeverZero) {
  EXPECT_EQ(PerSecond(1'000, 2.0), ", 500 per second");
  EXPECT_EQ(PerSecond(1, 3.0), ", 0.33 per second");
  EXPECT_EQ(PerSecond(1, 4'000.0), ", 0.00025 per second");
  EXPECT_EQ(PerSecond(19, 2.0), ", 9.5 per second");
}

TEST(PerSecond, IsNothingWhereThereIsNoRate) {
  EXPECT_EQ(PerSecond(0, 2.0), "");
  EXPECT_EQ(PerSecond(5, 0.0), "");
}

}  // namespace
}  // namespace sipi
