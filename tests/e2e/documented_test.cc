// Tables of docs/ that hold exact figures: the simulator gives the same ones again.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/e2e/command.h"
#include "vmm/cli/published_rows.h"

namespace sipi::e2e {
namespace {

using nlohmann::json;

struct Row {
  std::string profile, strategy, published_ms, simulated_ms, error, kind;
};

// The bring-up rows of the table of published times.
std::vector<Row> DocumentedRows() {
  std::istringstream text(ReadWholeFile(std::string(SIPI_SOURCE_ROOT) + "/docs/performance.md"));
  const std::regex row(R"(\| ([a-z]+-\d+) \| (\S+) \| (\d+) \| (\d+\.\d) \| )"
                       R"(([+-]\d+\.\d) % \| (fitted|predicted) \|)");
  std::vector<Row> rows;
  std::smatch m;
  for (std::string line; std::getline(text, line);) {
    if (std::regex_match(line, m, row)) rows.push_back({m[1], m[2], m[3], m[4], m[5], m[6]});
  }
  return rows;
}

std::string OneDigit(double value, const char* format) {
  char text[32];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

// Median time of each strategy, as `sipi bench published --runs=5` takes it.
std::map<std::string, double> SimulatedMs(const std::string& profile,
                                          const std::string& strategies) {
  const std::string path = TempPath("published.json");
  const Finished finished = Sipi({"compare", "--machine=sim", "--profile=" + profile, "--runs=5",
                                  "--strategies=" + strategies, "--json=" + path});
  EXPECT_EQ(finished.status, 0) << finished.err;
  std::map<std::string, double> medians;
  const json compare = json::parse(ReadWholeFile(path));
  for (const json& each : compare["rows"]) {
    medians[each["strategy"]] = each["median_ns"].get<double>() / 1e6;
  }
  return medians;
}

TEST(Documented, ThePublishedTimesAreTheToolsRowForRow) {
  const std::vector<Row> rows = DocumentedRows();
  ASSERT_EQ(rows.size(), std::size(kPublishedRows));
  std::map<std::string, std::string> strategies;
  for (const PublishedRow& row : kPublishedRows) {
    std::string& list = strategies[row.profile];
    list += (list.empty() ? "" : ",") + std::string(row.strategy);
  }
  std::map<std::string, std::map<std::string, double>> simulated;
  for (const auto& [profile, list] : strategies) simulated[profile] = SimulatedMs(profile, list);
  for (size_t i = 0; i < rows.size(); ++i) {
    const PublishedRow& row = kPublishedRows[i];
    SCOPED_TRACE(std::string(row.profile) + " " + row.strategy);
    EXPECT_EQ(rows[i].profile, row.profile);
    EXPECT_EQ(rows[i].strategy, row.strategy);
    EXPECT_EQ(rows[i].published_ms, std::to_string(row.published_ns / kPublishedMs));
    EXPECT_EQ(rows[i].kind, row.fitted ? "fitted" : "predicted");
    const double ms = simulated[row.profile][row.strategy];
    const double published_ms = static_cast<double>(row.published_ns) / 1e6;
    EXPECT_EQ(rows[i].simulated_ms, OneDigit(ms, "%.1f"));
    EXPECT_EQ(rows[i].error, OneDigit((ms - published_ms) * 100 / published_ms, "%+.1f"));
  }
}

}  // namespace
}  // namespace sipi::e2e
