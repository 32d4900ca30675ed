// Every printed figure can be recomputed from a timeline, and traces keep Perfetto's rules.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>

#include "tests/e2e/command.h"
#include "tests/support/trace_rules.h"

namespace sipi::e2e {
namespace {

using nlohmann::json;

int64_t SmpbootFromEvents(const json& run) {
  int64_t begin = -1, end = -1;
  for (const json& event : run["events"]) {
    if (event["name"] == "smpboot-begin") begin = event["t_ns"];
    if (event["name"] == "smpboot-end") end = event["t_ns"];
  }
  return end - begin;
}

int64_t Median(std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

TEST(CompareJson, CanBeRecomputedFromTheTimelinesOfItsRuns) {
  SKIP_WITHOUT_KVM();
  const std::string path = TempPath("compare.json"), runs = TempPath("runs");
  mkdir(runs.c_str(), 0755);
  const Finished f =
      Sipi({"compare", "--cpus=64", "--runs=3", "--strategies=serial,kick,full+reuse",
            "--json=" + path, "--runs-dir=" + runs});
  ASSERT_EQ(f.status, 0) << f.err;
  const json compare = json::parse(ReadWholeFile(path));
  EXPECT_EQ(compare["schema"], "sipi.compare/1");
  EXPECT_EQ(compare["baseline"], "serial");

  std::map<std::string, std::vector<int64_t>> times;
  for (const auto& entry : std::filesystem::directory_iterator(runs)) {
    const json run = json::parse(ReadWholeFile(entry.path()));
    EXPECT_EQ(run["schema"], "sipi.run/1");
    EXPECT_EQ(run["smpboot_ns"], SmpbootFromEvents(run)) << entry.path();
    times[run["strategy"]].push_back(run["smpboot_ns"]);
  }
  ASSERT_EQ(compare["rows"].size(), 3u);
  const auto baseline = static_cast<double>(Median(times["serial"]));
  for (const json& row : compare["rows"]) {
    const std::vector<int64_t>& t = times.at(row["strategy"]);
    EXPECT_EQ(row["runs"], t.size());
    EXPECT_EQ(row["median_ns"], Median(t));
    EXPECT_EQ(row["min_ns"], *std::min_element(t.begin(), t.end()));
    EXPECT_EQ(row["max_ns"], *std::max_element(t.begin(), t.end()));
    EXPECT_NEAR(row["ratio"], baseline / static_cast<double>(Median(t)), 0.005);
    EXPECT_EQ(row["cpus_online"], 64);
    // The table says the same: each strategy's line is there.
    EXPECT_NE(f.out.find(row["strategy"].get<std::string>()), std::string::npos);
  }
}

// Start and end of each AP's bring-up, as the run's JSON has them.
std::vector<std::pair<int64_t, int64_t>> Spans(const json& run) {
  std::vector<std::pair<int64_t, int64_t>> spans;
  for (const json& cpu : run["cpus"]) {
    if (cpu["cpu"] != 0) spans.emplace_back(cpu["kicked_ns"], cpu["online_ns"]);
  }
  return spans;
}

TEST(Trace, OpensInPerfettoAndShowsAStaircaseForSerialAndAWallForFull) {
  SKIP_WITHOUT_KVM();
  const std::string serial_trace = TempPath("serial.trace.json"),
                    full_trace = TempPath("full.trace.json");
  const RunResult serial = SipiRun({"--cpus=64", "--strategy=serial", "--trace=" + serial_trace});
  const RunResult full = SipiRun({"--cpus=64", "--strategy=full", "--trace=" + full_trace});
  for (const std::string& path : {serial_trace, full_trace}) {
    for (const std::string& broken : CheckTrace(ReadWholeFile(path)).violations)
      ADD_FAILURE() << path << ": " << broken;
  }
  // Staircase: no two APs are between kick and online at once. Wall: the last is kicked before most
  // are online.
  auto stairs = Spans(serial.json);
  std::sort(stairs.begin(), stairs.end());
  for (size_t i = 1; i < stairs.size(); ++i) EXPECT_GE(stairs[i].first, stairs[i - 1].second) << i;
  int overlapping = 0;
  auto wall = Spans(full.json);
  std::sort(wall.begin(), wall.end());
  for (size_t i = 1; i < wall.size(); ++i) overlapping += wall[i].first < wall[i - 1].second;
  EXPECT_GT(overlapping, 32);
}

}  // namespace
}  // namespace sipi::e2e
