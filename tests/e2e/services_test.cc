// `sipi smt`, `sipi rcu` and `sipi run --scenario=hotplug` as a user runs them, on both machines.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace sipi::e2e {
namespace {

using nlohmann::json;

// The command with --json: its report, and the file.
struct Result {
  Finished finished;
  json file;
};

Result SipiJson(std::vector<std::string> args) {
  const std::string path = TempPath("result.json");
  args.push_back("--json=" + path);
  Result result;
  result.finished = Sipi(args, {.timeout_s = 300});
  const std::string text = ReadWholeFile(path);
  if (json::accept(text)) result.file = json::parse(text);
  EXPECT_TRUE(result.file.is_object()) << result.finished.err;
  return result;
}

class OnEachMachine : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (std::string(GetParam()) == "kvm") SKIP_WITHOUT_KVM();
  }
  static std::string Machine() { return std::string("--machine=") + GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Machines, OnEachMachine, testing::Values("sim", "kvm"),
                         [](const auto& instance) { return std::string(instance.param); });

TEST_P(OnEachMachine, SmtSwitchesByEveryApproach) {
  const std::string trace = TempPath("smt.trace.json");
  const std::string page = TempPath("smt.html");
  const Result result = SipiJson({"smt", Machine(), "--cpus=4", "--topology=threads=2",
                                  "--approach=all", "--trace=" + trace, "--html=" + page});
  ASSERT_EQ(result.finished.status, 0) << result.finished.out << result.finished.err;
  EXPECT_EQ(result.file["schema"], "sipi.smt/1");
  EXPECT_EQ(result.file["complete"], true);
  ASSERT_EQ(result.file["rows"].size(), 7u);
  for (const json& row : result.file["rows"]) {
    const std::string approach = row["approach"];
    EXPECT_NE(result.finished.out.find("\n" + approach + " "), std::string::npos) << approach;
    EXPECT_EQ(row["off"]["operations"], 2) << approach;
    EXPECT_EQ(row["on"]["operations"], 2) << approach;
    EXPECT_GT(row["off"]["longest_hold_ns"], 0) << approach;
    const json& waits = row["off"]["grace_periods"];
    if (approach == "none") {
      EXPECT_GT(waits["normal"], 0);
      EXPECT_EQ(waits["expedited"], 0);
    }
    if (approach == "expedite") {
      EXPECT_EQ(waits["normal"], 0);
      EXPECT_GT(waits["expedited"], 0);
    }
  }
  // The trace shows the same switches with the same lengths.
  std::multimap<std::string, double> spans;
  const json written = json::parse(ReadWholeFile(trace));
  for (const json& event : written["traceEvents"]) {
    if (event["ph"] == "X")
      spans.emplace(event["name"].get<std::string>(), event["dur"].get<double>());
  }
  for (const json& each : result.file["switches"]) {
    const std::string name =
        "smt " + each["direction"].get<std::string>() + ": " + each["approach"].get<std::string>();
    const auto found = spans.find(name);
    ASSERT_NE(found, spans.end()) << name;
    EXPECT_NEAR(found->second * 1000, each["ns"].get<double>(), 1) << name;
  }
  EXPECT_NE(ReadWholeFile(page).find("</html>"), std::string::npos);
}

// By the script's rule, from the durations in the file.
int64_t Rank(const std::vector<int64_t>& sorted, size_t percent) {
  return sorted[std::max<size_t>(sorted.size() * percent / 100, 1) - 1];
}

TEST_P(OnEachMachine, RcuScaleMeasuresWhatItWasAskedFor) {
  for (const bool expedited : {false, true}) {
    std::vector<std::string> args = {"rcu", "scale", Machine(), "--cpus=2", "--measurements=20"};
    if (expedited) args.emplace_back("--expedited");
    const Result result = SipiJson(args);
    ASSERT_EQ(result.finished.status, 0) << result.finished.out << result.finished.err;
    EXPECT_TRUE(result.finished.out.ends_with("Computed from sipi's timeline.\n"));
    EXPECT_EQ(result.file["complete"], true);
    EXPECT_EQ(result.file["expedited"], expedited);
    ASSERT_EQ(result.file["writers"].size(), 2u);
    std::vector<int64_t> all;
    for (const json& writer : result.file["writers"]) {
      EXPECT_GE(writer["durations_ns"].size(), 20u);
      for (const int64_t ns : writer["durations_ns"]) all.push_back(ns);
    }
    std::sort(all.begin(), all.end());
    EXPECT_EQ(result.file["grace_periods"], all.size());
    EXPECT_GT(result.file["batches"], 0);
    // JSON has six digits.
    const double p90_us = static_cast<double>(Rank(all, 90)) / 1000;
    EXPECT_NEAR(result.file["p90_us"], p90_us, p90_us * 1e-5);
    EXPECT_GT(result.file["phases"]["median_whole_ns"], 0);
  }
}

// More writers than this host has cores: the first one, which never sleeps by itself, must not keep
// the others from being started.
TEST_P(OnEachMachine, AsyncScaleEndsAndSaysWhatItMeasured) {
  const Result result =
      SipiJson({"rcu", "scale", Machine(), "--cpus=4", "--measurements=5", "--async"});
  ASSERT_EQ(result.finished.status, 0) << result.finished.out << result.finished.err;
  EXPECT_EQ(result.file["lost_events"], 0);
  EXPECT_EQ(result.file["measured"], "call_rcu");
  EXPECT_GE(result.file["callbacks"], 20);
  EXPECT_GT(result.file["batches"], 0);
  EXPECT_NE(result.finished.out.find("Average call_rcu() duration: "), std::string::npos);
  EXPECT_EQ(result.finished.out.find("!!!"), std::string::npos) << result.finished.out;
}

TEST_P(OnEachMachine, TortureSucceeds) {
  const Result result = SipiJson({"rcu", "torture", Machine(), "--cpus=3", "--seconds=1"});
  EXPECT_EQ(result.finished.status, 0) << result.finished.out << result.finished.err;
  EXPECT_TRUE(result.finished.out.ends_with("--- End of test: SUCCESS\n")) << result.finished.out;
  EXPECT_EQ(result.file["result"], "SUCCESS");
  EXPECT_GT(result.file["reads"], 0);
  EXPECT_EQ(result.file["readers"], 2);
  EXPECT_EQ(result.file["fake_writers"], 4);
  EXPECT_EQ(result.file["lost_events"], 0);
}

TEST_P(OnEachMachine, HotplugGoesRoundByRound) {
  const Result result = SipiJson(
      {"run", Machine(), "--cpus=3", "--scenario=hotplug", "--rounds=2", "--rcu-fanout-leaf=2"});
  ASSERT_EQ(result.finished.status, 0) << result.finished.out << result.finished.err;
  EXPECT_EQ(result.file["cpus_online"], 3);
  EXPECT_EQ(result.file["kernel"]["rcu_fanout_leaf"], 2);
  std::map<int, int> operations;
  for (const json& event : result.file["events"]) {
    if (event["name"] != "hotplug-end") continue;
    EXPECT_EQ(event["value"], 0);
    ++operations[event["target"]];
  }
  EXPECT_EQ(operations, (std::map<int, int>{{1, 4}, {2, 4}}));
  // Nobody else waits for grace periods here: each wait is part of some operation.
  uint64_t waits = 0;
  for (const json& event : result.file["events"]) waits += event["name"] == "sync-end" ? 1u : 0u;
  uint64_t accounted = 0;
  uint64_t for_locks = 0;
  for (const json& operation : result.file["hotplug"]) {
    for (const json& count : operation["grace_periods"]) accounted += count.get<uint64_t>();
    for (const json& count : operation["locks_grace_periods"]) for_locks += count.get<uint64_t>();
    EXPECT_LT(operation["locks_ns"], operation["ns"]);
  }
  EXPECT_EQ(result.file["hotplug"].size(), 8u);
  EXPECT_EQ(accounted, waits);
  EXPECT_GT(for_locks, 0u);
  EXPECT_LT(for_locks, waits);
  EXPECT_NE(result.finished.out.find("hotplug  "), std::string::npos);
}

TEST_P(OnEachMachine, ReadersAreMeasured) {
  const Result result = SipiJson({"rcu", "ref", Machine(), "--cpus=2", "--rounds=3"});
  ASSERT_EQ(result.finished.status, 0) << result.finished.out << result.finished.err;
  EXPECT_EQ(result.file["points_ps"].size(), 3u);
  EXPECT_EQ(result.file["readers"], 1);
  EXPECT_EQ(result.file["measured"], std::string(GetParam()) == "kvm");
  EXPECT_NE(result.finished.out.find("nreaders=1 loops=2000 nruns=3\n"), std::string::npos)
      << result.finished.out;
}

TEST_P(OnEachMachine, CallRcuRunsEveryCallbackOnce) {
  const Result result =
      SipiJson({"rcu", "callrcu", Machine(), "--cpus=2", "--callbacks=200", "--seconds=1"});
  ASSERT_EQ(result.finished.status, 0) << result.finished.out << result.finished.err;
  ASSERT_EQ(result.file["rows"].size(), 3u);
  for (const json& row : result.file["rows"]) {
    EXPECT_EQ(row["callbacks_run"], row["callbacks_queued"]);
    EXPECT_GE(row["callbacks_run"], 400);
    if (row["pinning"] == "at-start") {
      EXPECT_EQ(row["pinned_us"].size(), 2u);
    }
  }
}

// Each scenario does what it can on the CPUs that are online, names the one that is not, and says
// by its status that something is missing.
TEST_P(OnEachMachine, WithACpuMissingTheScenarioIsPartial) {
  const std::vector<std::vector<std::string>> commands = {
      {"rcu", "scale", "--measurements=5", "--readers=3"},
      {"rcu", "ref", "--rounds=2", "--readers=3"},
      {"rcu", "callrcu", "--callbacks=50", "--seconds=1", "--pinning=at-start"},
      {"rcu", "torture", "--seconds=1"},
      {"run", "--scenario=hotplug"},
      {"run", "--scenario=hotplug", "--hotplug-cpu=1"}};
  for (std::vector<std::string> command : commands) {
    const std::string name = command[0] + " " + command[1];
    for (const char* flag : {"--cpus=3", "--fault=no-start@1", "--handshake-timeout-ms=200"}) {
      command.emplace_back(flag);
    }
    command.push_back(Machine());
    const Finished finished = Sipi(command, {.timeout_s = 60});
    EXPECT_EQ(finished.status, 3) << name << finished.out << finished.err;
    EXPECT_NE(finished.out.find("CPU 1 "), std::string::npos) << name << finished.out;
  }
}

// Siblings that were not asked for are not missing.
TEST_P(OnEachMachine, WithSmtOffTheScenarioIsWhole) {
  const std::vector<std::vector<std::string>> commands = {
      {"rcu", "scale", "--measurements=5", "--readers=4"},
      {"rcu", "ref", "--rounds=2"},
      {"rcu", "callrcu", "--callbacks=50", "--seconds=1", "--pinning=at-start"},
      {"rcu", "torture", "--seconds=1"},
      {"run", "--scenario=hotplug"}};
  for (std::vector<std::string> command : commands) {
    const std::string name = command[0] + " " + command[1];
    for (const char* flag : {"--cpus=4", "--topology=threads=2", "--smt=off"}) {
      command.emplace_back(flag);
    }
    command.push_back(Machine());
    const Finished finished = Sipi(command, {.timeout_s = 60});
    EXPECT_EQ(finished.status, 0) << name << finished.out << finished.err;
  }
}

TEST(Services, ASimulatedRunCanBeRepeatedExactly) {
  std::string files[2];
  for (std::string& file : files) {
    const std::string path = TempPath("repeat.json");
    const Finished finished = Sipi({"smt", "--machine=sim", "--cpus=4", "--topology=threads=2",
                                    "--approach=none,expedite", "--seed=5", "--json=" + path});
    ASSERT_EQ(finished.status, 0) << finished.err;
    file = ReadWholeFile(path);
  }
  EXPECT_EQ(files[0], files[1]);
}

// docs/simulator.md promises a sample that steal time has spoilt.
TEST(Documented, TheCommandLineForStealTimeShowsARejectedSample) {
  const std::string text = ReadWholeFile(std::string(SIPI_SOURCE_ROOT) + "/docs/simulator.md");
  std::smatch found;
  ASSERT_TRUE(std::regex_search(text, found, std::regex("`sipi (run [^`]*--steal=[^`]*)`")));
  std::istringstream words(found[1].str());
  std::vector<std::string> args;
  for (std::string word; words >> word;) {
    args.push_back(word.starts_with("--trace=") ? "--trace=" + TempPath("steal.trace") : word);
  }
  const Result result = SipiJson(args);
  ASSERT_EQ(result.finished.status, 0) << result.finished.err;
  const auto count = [&result](const char* name) {
    return std::count_if(result.file["events"].begin(), result.file["events"].end(),
                         [name](const json& event) { return event["name"] == name; });
  };
  EXPECT_GT(count("calibrate-rejected"), 0) << found[1];
  EXPECT_EQ(count("calibrate-end"), result.file["cpus_offered"]) << "each has its own in the end";
}

TEST(Services, BootTimeGracePeriodsCostBringUp) {
  std::map<std::string, int64_t> smpboot_ns;
  for (const std::string kind : {"none", "normal", "expedited"}) {
    const Result result = SipiJson({"run", "--machine=sim", "--cpus=4", "--boot-gp=" + kind});
    ASSERT_EQ(result.finished.status, 0) << result.finished.err;
    EXPECT_EQ(result.file["kernel"]["boot_gp"], kind);
    smpboot_ns[kind] = result.file["smpboot_ns"];
  }
  // Virtual time: no noise. A normal grace period is two jiffies.
  EXPECT_GT(smpboot_ns["normal"], smpboot_ns["expedited"]);
  EXPECT_GT(smpboot_ns["normal"], smpboot_ns["none"]);
}

}  // namespace
}  // namespace sipi::e2e
