// Campaigns and their files: split, stopped, resumed, merged; saved cases.
#include "vmm/explore/campaign.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "vmm/explore/campaign_merge.h"
#include "vmm/explore/campaign_state.h"
#include "vmm/explore/saved_case.h"

namespace sipi {
namespace {

CampaignPlan SmallPlan() {
  CampaignPlan plan;
  plan.schedules = 3'000;
  plan.jobs = 2;
  return plan;
}

TEST(Campaign, ShardsDoEverythingOnce) {
  for (const uint32_t shards : {1u, 3u, 7u}) {
    uint64_t sum = 0;
    for (uint32_t shard = 1; shard <= shards; ++shard) {
      sum += SchedulesOfShard(1000, shard, shards);
    }
    EXPECT_EQ(sum, 1000u);
  }
  EXPECT_EQ(SchedulesOfShard(10, 1, 3), 4u);
  EXPECT_EQ(SchedulesOfShard(10, 3, 3), 3u);
}

TEST(Campaign, RunsToItsEndAndCanBeStopped) {
  CampaignState state;
  const std::atomic<bool> go{false};
  EXPECT_TRUE(RunCampaign(SmallPlan(), go, nullptr, state).ok());
  EXPECT_EQ(state.done, 3'000u);
  EXPECT_TRUE(state.failures.empty()) << state.failures[0].wrong;

  CampaignState stopped;
  const std::atomic<bool> stop{true};
  EXPECT_TRUE(RunCampaign(SmallPlan(), stop, nullptr, stopped).ok());
  EXPECT_LT(stopped.done, 3'000u);
}

TEST(Campaign, GoesOnWhereItsStateSays) {
  CampaignPlan plan = SmallPlan();
  plan.shard = 2;
  plan.shards = 2;
  CampaignState state = FreshState(plan);
  state.done = 1'499;
  state.failures.push_back({42, "as it was"});
  absl::StatusOr<CampaignState> read = ParseState(StateJson(state), "state.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(CheckResumes(*read, "state.json", plan).ok());
  plan.max_failures = 10;
  const std::atomic<bool> go{false};
  EXPECT_TRUE(RunCampaign(plan, go, nullptr, *read).ok());
  EXPECT_EQ(read->done, 1'500u);
  ASSERT_EQ(read->failures.size(), 1u);
  EXPECT_EQ(read->failures[0].wrong, "as it was");
}

// Everything that changes which cases run, or what they do, is part of whose state it is.
TEST(Campaign, AStateIsOfOneCampaignOnly) {
  struct Other {
    const char* named;
    void (*change)(CampaignPlan& plan);
  };
  const Other others[] = {
      {"--scenario is smpboot there and rcu here",
       [](CampaignPlan& p) { p.space.scenario = ExploreScenario::kRcu; }},
      {"--cpus is drawn there and 3 here", [](CampaignPlan& p) { p.space.cpus = 3; }},
      {"--strategy is drawn there and tree here",
       [](CampaignPlan& p) { p.space.strategy = sequence::StrategyId::kTree; }},
      {"--faults is on there and off here", [](CampaignPlan& p) { p.space.faults = false; }},
      {"--retry is drawn there and off here", [](CampaignPlan& p) { p.space.retry = false; }},
      {"--seed is 1 there and 2 here", [](CampaignPlan& p) { p.first_seed = 2; }},
      {"--schedules is 3000 there and 3001 here", [](CampaignPlan& p) { p.schedules = 3'001; }},
      {"--shard is 1/2 there and 2/2 here", [](CampaignPlan& p) { p.shard = 2; }},
      {"number of shards is 2 there and 3 here", [](CampaignPlan& p) { p.shards = 3; }},
  };
  CampaignPlan plan = SmallPlan();
  plan.shards = 2;
  const absl::StatusOr<CampaignState> state = ParseState(StateJson(FreshState(plan)), "x.json");
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_TRUE(CheckResumes(*state, "x.json", plan).ok());
  for (const Other& other : others) {
    CampaignPlan changed = plan;
    other.change(changed);
    const std::string error(CheckResumes(*state, "x.json", changed).message());
    EXPECT_EQ(error.rfind("x.json is another campaign's: ", 0), 0u) << other.named << error;
    EXPECT_NE(error.find(other.named), std::string::npos) << error;
    EXPECT_NE(error.find("name another file"), std::string::npos) << error;
    const auto round = ParseState(StateJson(FreshState(changed)), "y.json");
    ASSERT_TRUE(round.ok()) << round.status();
    EXPECT_TRUE(CheckResumes(*round, "y.json", changed).ok()) << other.named;
  }
  CampaignState older = *state;
  older.campaign.version = "0.0.1";
  EXPECT_NE(CheckResumes(older, "x.json", plan).message().find("version of sipi is 0.0.1 there"),
            absl::string_view::npos);
  older = *state;
  older.campaign.cases = "0";
  EXPECT_NE(CheckResumes(older, "x.json", plan).message().find("kernel and cases is 0 there"),
            absl::string_view::npos);
  plan.jobs = 7;
  plan.max_failures = 9;
  EXPECT_TRUE(CheckResumes(*state, "x.json", plan).ok()) << "neither changes what is run";
}

std::string StateError(const std::string& text) {
  const absl::StatusOr<CampaignState> state = ParseState(text, "x.json");
  EXPECT_FALSE(state.ok());
  const std::string error(state.status().message());
  EXPECT_EQ(error.find("json.exception"), std::string::npos) << error;
  return error;
}

TEST(Campaign, AFileThatIsNoStateIsRefused) {
  for (const char* text : {"", "{}", "[1]", "{\"schema\":\"sipi.run/1\"}", "{\"schema\":1}"}) {
    EXPECT_EQ(StateError(text).substr(0, 7), "x.json:");
  }
  EXPECT_EQ(StateError("{\n\"schema\": oops}").substr(0, 42),
            "x.json: malformed JSON at line 2, column 1");
  EXPECT_NE(StateError("[1e999]").find("too large"), std::string::npos);
  EXPECT_NE(StateError(R"({"schema":"sipi.explore/1","first_seed":1,"schedules":20000,"shard":1,)"
                       R"("shards":1,"done":20000,"failures":[]})")
                .find("older sipi"),
            std::string::npos);
  // Each key is needed, and has its type.
  const std::string whole = StateJson(FreshState(SmallPlan()));
  const auto tree = nlohmann::ordered_json::parse(whole);
  for (const auto& [key, value] : tree.items()) {
    auto without = tree;
    without.erase(key);
    const std::string named = "\"" + key + "\"";
    if (key != "scenario") {
      EXPECT_NE(StateError(without.dump()).find(named), std::string::npos);
    }
    without[key] = 1.5;
    EXPECT_NE(StateError(without.dump()).find(named), std::string::npos);
  }
}

// A file that somebody changed, or that was cut, is not believed.
TEST(Campaign, AStatesNumbersHaveTheirRanges) {
  CampaignPlan plan = SmallPlan();
  CampaignState state = FreshState(plan);
  state.failures.push_back({42, "as it was"});
  const auto tree = nlohmann::ordered_json::parse(StateJson(state));
  const auto expect = [&tree](const char* key, const nlohmann::ordered_json& value,
                              const std::string& wanted) {
    auto changed = tree;
    changed[key] = value;
    const std::string error = StateError(changed.dump());
    EXPECT_NE(error.find(absl::StrCat("\"", key, "\" ", wanted)), std::string::npos) << error;
  };
  const std::string out = "is out of range: it is from ";
  for (const auto& [key, range] :
       std::vector<std::pair<const char*, std::string>>{{"done", "0 to 3000"},
                                                        {"first_seed", "0 to 9223372036854775807"},
                                                        {"schedules", "1 to 9223372036854775807"},
                                                        {"shards", "1 to 1000000"},
                                                        {"shard", "1 to 1"},
                                                        {"cpus", "2 to 64"}}) {
    expect(key, -1, out + range);
    expect(key, ~uint64_t{0}, out + range);
    expect(key, 1e300, "must be a whole number");
  }
  expect("done", 3'001, out + "0 to 3000");
  expect("shards", 4'294'967'297, out + "1 to 1000000");
  expect("shard", 4'294'967'297, out + "1 to 1");
  expect("shard", 0, out + "1 to 1");
  expect("cpus", -4'294'967'290, out + "2 to 64");
  const std::string twice = StateError([&tree] {
    auto two = tree;
    two["failures"].push_back(two["failures"][0]);
    return two.dump();
  }());
  EXPECT_NE(twice.find("failures[1] \"seed\" stands there twice"), std::string::npos) << twice;
  auto seed = tree;
  seed["failures"][0]["seed"] = 3'001;
  EXPECT_NE(StateError(seed.dump()).find("failures[0] \"seed\" " + out + "1 to 3000"),
            std::string::npos);
}

TEST(Campaign, ASeedOfAnotherShardIsRefused) {
  CampaignPlan plan = SmallPlan();
  plan.shard = 2;
  plan.shards = 4;
  plan.first_seed = 100;
  CampaignState state = FreshState(plan);
  state.failures = {{101, "its own"}, {105, "its own"}};
  EXPECT_TRUE(ParseState(StateJson(state), "x.json").ok());
  state.failures.push_back({110, "shard 3's"});
  EXPECT_EQ(
      StateError(StateJson(state)),
      "x.json: failures[2] \"seed\" is shard 3/4's: the file is shard 2/4's; give a file that "
      "`sipi explore --state` wrote");
}

TEST(SavedCase, NumbersHaveTheirRanges) {
  const auto tree =
      nlohmann::ordered_json::parse(SavedCaseJson(MakeSavedCase(7, {}, {"schedule"})));
  const auto error = [&tree](const char* key, const nlohmann::ordered_json& value) {
    auto changed = tree;
    changed[key] = value;
    return std::string(ParseSavedCase(changed.dump(), "c.json").status().message());
  };
  const std::string cpus = "c.json: the file \"cpus\" is out of range: it is from 2 to 64";
  EXPECT_EQ(error("cpus", -4'294'967'290), cpus);
  EXPECT_EQ(error("cpus", 1), cpus);
  EXPECT_EQ(error("cpus", 65), cpus);
  EXPECT_EQ(error("cpus", 64), "");
  EXPECT_EQ(error("seed", -1),
            "c.json: the file \"seed\" is out of range: it is from 0 to 18446744073709551615");
  EXPECT_EQ(error("seed", 1.9e300), "c.json: the file \"seed\" must be a whole number");
}

TEST(SavedCase, ABadFileIsToldInWordsOfOurOwn) {
  const std::string whole = SavedCaseJson(MakeSavedCase(7, {}, {"schedule"}));
  ASSERT_TRUE(ParseSavedCase(whole, "c.json").ok());
  const auto error = [](const std::string& text) {
    const std::string message(ParseSavedCase(text, "c.json").status().message());
    EXPECT_EQ(message.rfind("c.json: ", 0), 0u) << message;
    EXPECT_EQ(message.find("exception"), std::string::npos) << message;
    return message;
  };
  EXPECT_NE(error("{\"seed\":").find("malformed JSON at line 1, column 9"), std::string::npos);
  for (const char* text : {"", "[]", "1e999", "{\"schema\":\"sipi.explore/2\"}"}) error(text);
  const auto tree = nlohmann::ordered_json::parse(whole);
  for (const auto& [key, value] : tree.items()) {
    auto wrong = tree;
    wrong[key] = 1.5;
    EXPECT_NE(error(wrong.dump()).find("\"" + key + "\""), std::string::npos);
  }
  auto wrong = tree;
  wrong["left_out"] = {1};
  error(wrong.dump());
}

TEST(SavedCase, AnotherBuildsCaseIsTold) {
  const SavedCase saved = MakeSavedCase(7, {}, {});
  EXPECT_EQ(OtherBuildsNote(saved, "c.json"), "");
  const auto note = [&saved](const char* key, const std::string& value) {
    auto tree = nlohmann::ordered_json::parse(SavedCaseJson(saved));
    tree[key] = value;
    const absl::StatusOr<SavedCase> read = ParseSavedCase(tree.dump(), "c.json");
    EXPECT_TRUE(read.ok()) << read.status();
    return OtherBuildsNote(*read, "c.json");
  };
  EXPECT_EQ(note("version", saved.version), "");
  for (const std::string& told :
       {note("version", "0.0.1"), note("cases", "0123"), note("schema", "sipi.explore.case/1")}) {
    EXPECT_EQ(told.rfind("c.json: was saved by another build of sipi (", 0), 0u) << told;
    EXPECT_NE(told.find("may not fail here. Replay it with the build that saved it"),
              std::string::npos);
  }
  EXPECT_NE(note("cases", "01\x1b[2J23").find("01?[2J23"), std::string::npos);
  SavedCase other = saved;
  other.left_out = {"gra\x1bvity"};
  EXPECT_EQ(CaseOf(other, "c.json").status().message().substr(0, 30),
            "c.json: leaves out 'gra?vity',");
}

StateFile ShardFile(const std::string& path, uint32_t shard, uint64_t done) {
  CampaignPlan plan = SmallPlan();
  plan.shard = shard;
  plan.shards = 3;
  StateFile file{path, FreshState(plan)};
  file.state.done = done;
  return file;
}

TEST(Merge, AllShardsMakeTheCampaign) {
  const absl::StatusOr<Merged> merged =
      MergeStates({ShardFile("c", 3, 1000), ShardFile("a", 1, 1000), ShardFile("b", 2, 1000)});
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_TRUE(merged->complete);
  EXPECT_FALSE(merged->failing);
  EXPECT_EQ(merged->text, "3 of 3 shards, 3000 of 3000 schedules done, 0 failures\n");
}

TEST(Merge, NamesWhatIsMissingAndUnfinished) {
  StateFile second = ShardFile("b.json", 2, 400);
  second.state.failures.push_back({7, "it is wrong"});
  const absl::StatusOr<Merged> merged = MergeStates({second});
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_FALSE(merged->complete);
  EXPECT_TRUE(merged->failing);
  EXPECT_EQ(merged->text,
            "1 of 3 shards, 400 of 3000 schedules done, 1 failures\n"
            "  missing: shard 1, 3 of 3\n"
            "  unfinished: shard 2 (b.json), 400 of 1000 schedules done\n"
            "  seed 7: it is wrong\n");
}

TEST(Merge, WhatAFileSaysCannotSteerTheTerminal) {
  StateFile file = ShardFile("a.json", 1, 1000);
  file.state.failures.push_back({7, "\x1b]0;title\x07 it is\nwrong\r"});
  const absl::StatusOr<Merged> merged = MergeStates({file});
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_NE(merged->text.find("  seed 7: ?]0;title? it is?wrong?\n"), std::string::npos)
      << merged->text;
  StateFile foreign = ShardFile("f.json", 2, 1000);
  foreign.state.campaign.version = "9\x1b[2J";
  EXPECT_EQ(MergeStates({file, foreign}).status().message().find('\x1b'), absl::string_view::npos);
}

TEST(Merge, RefusesAShardTwiceAndAnotherCampaignsFile) {
  const auto twice = MergeStates({ShardFile("a.json", 1, 1000), ShardFile("b.json", 1, 1000)});
  EXPECT_EQ(twice.status().message(),
            "b.json is shard 1/3, and so is a.json; give each shard once");
  StateFile foreign = ShardFile("f.json", 2, 1000);
  foreign.state.campaign.space.cpus = 3;
  const auto other = MergeStates({ShardFile("a.json", 1, 1000), foreign});
  EXPECT_EQ(other.status().message(),
            "f.json is of another campaign than a.json: --cpus is 3 in f.json and drawn in a.json; "
            "give the shards of one campaign");
}

}  // namespace
}  // namespace sipi
