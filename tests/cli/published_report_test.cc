// The report of `sipi bench published`, from results made by hand.
#include "vmm/cli/published_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace sipi {
namespace {

PublishedResults Results() {
  PublishedResults results;
  results.runs = 3;
  results.bring_up = {{"server-9", "full", "", 100'000'000, 75'500'000, false}};
  results.smt = {{"ppc-9", "off", "expedited", 3'200'000'000, 2'915'000'000, true}};
  return results;
}

// A reader who divides what is shown comes to the error that is shown.
TEST(PublishedReport, HasTheDigitsThatItsErrorsNeed) {
  const std::string text = PublishedText(Results());
  EXPECT_NE(text.find("100        75.500    -24.5  predicted"), std::string::npos) << text;
  EXPECT_NE(text.find("3.200        2.915     -8.9  fitted"), std::string::npos) << text;
}

TEST(PublishedReport, JsonHasTheRowsOfTheTables) {
  const nlohmann::json file = nlohmann::json::parse(PublishedJson(Results()));
  EXPECT_EQ(file["schema"], "sipi.published/1");
  EXPECT_EQ(file["runs"], 3);
  const nlohmann::json boot = {{"profile", "server-9"},       {"strategy", "full"},
                               {"published_ns", 100'000'000}, {"simulated_ns", 75'500'000},
                               {"error_percent", -24.5},      {"fitted", false}};
  EXPECT_EQ(file["bring_up"], nlohmann::json::array({boot}));
  EXPECT_EQ(file["smt"][0]["direction"], "off");
  EXPECT_EQ(file["smt"][0]["grace_periods"], "expedited");
  EXPECT_EQ(file["smt"][0]["simulated_ns"], 2'915'000'000);
}

}  // namespace
}  // namespace sipi
