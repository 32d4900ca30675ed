#include "vmm/cli/suggest.h"

#include <gtest/gtest.h>

namespace sipi {
namespace {

const std::vector<std::string> kNames = {"serial", "kick", "kick+wait", "primary-first", "full"};

TEST(NearestName, FindsASlipOfOneLetter) {
  EXPECT_EQ(NearestName("seriel", kNames), "serial");
  EXPECT_EQ(NearestName("kik", kNames), "kick");
  EXPECT_EQ(NearestName("primaryfirst", kNames), "primary-first");
}

TEST(NearestName, TakesABeginningForTheWhole) {
  EXPECT_EQ(NearestName("primary", kNames), "primary-first");
}

TEST(NearestName, IsSilentAboutWhatIsFarAway) {
  EXPECT_EQ(NearestName("parallel", kNames), "");
  EXPECT_EQ(NearestName("", kNames), "");
  EXPECT_EQ(NearestName(std::string(100'000, 'k'), kNames), "");
}

TEST(DidYouMean, IsEmptyOrAPhrase) {
  EXPECT_EQ(DidYouMean("ful", kNames), "; did you mean 'full'?");
  EXPECT_EQ(DidYouMean("xyzzy", kNames), "");
}

}  // namespace
}  // namespace sipi
