// The explorer finds every broken variant of bring-up, within a bounded campaign. A campaign that
// finds none would look like a right kernel.
#include "canary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "vmm/base/exit_codes.h"
#include "vmm/base/text_file.h"
#include "vmm/cli/commands.h"
#include "vmm/cli/explore_flags.h"
#include "vmm/explore/exhaustive.h"
#include "vmm/explore/explorer.h"
#include "vmm/explore/saved_case.h"

namespace sipi {
namespace {

constexpr uint64_t kSchedules = 400'000;

TEST(Canary, EachIsFoundByACampaignOfBoundedSize) {
  Explorer explorer;
  std::printf("%-48s schedules  what was seen\n", "canary");
  for (const CanaryName& canary : kCanaries) {
    ExploreSpace space;
    space.canary = canary.number;
    std::string wrong;
    uint64_t seed = 0;
    while (wrong.empty() && ++seed <= kSchedules) wrong = explorer.Run(CaseOf(seed, space));
    EXPECT_FALSE(wrong.empty()) << canary.name << " was not found in " << kSchedules;
    if (wrong.empty()) continue;
    std::printf("%-48s %9llu  %.70s\n", canary.name, static_cast<unsigned long long>(seed),
                wrong.c_str());
  }
}

// The first failing schedule within two preemptions, of two and three CPUs, with and without a
// store buffer; without a fault, then with each step failing.
ExhaustiveResult Walk(const CanaryName& canary, uint64_t step) {
  const std::atomic<bool> go{false};
  ExhaustiveResult result;
  for (const uint32_t cpus : {2u, 3u}) {
    for (const bool buffered : {false, true}) {
      ExhaustivePlan plan;
      plan.space.cpus = cpus;
      plan.space.strategy = sequence::StrategyId::kKick;
      plan.space.canary = canary.number;
      plan.preemptions = 2;
      plan.store_buffer = buffered;
      if (step != 0) plan.fault = {.kind = abi::Fault::kFailStep, .cpu = 1, .value = step};
      result = RunExhaustive(plan, go, nullptr);
      if (!result.failing) continue;
      std::printf("%-48s %u CPUs%s%s %7llu  %.60s\n", canary.name, cpus,
                  buffered ? ", store buffer" : "", step != 0 ? ", failing step" : "",
                  static_cast<unsigned long long>(result.schedules), result.wrong.c_str());
      return result;
    }
  }
  EXPECT_TRUE(result.complete) << canary.name;
  return result;
}

// Those behind it, but for one, need a fault or another AP.
constexpr uint32_t kLastInAPlainBoot = 22;

TEST(Canary, AnExhaustiveWalkFindsThoseThatFailInAPlainBoot) {
  std::set<uint32_t> found;
  for (const CanaryName& canary : kCanaries) {
    if (canary.number > kLastInAPlainBoot && canary.number != 32) continue;
    if (Walk(canary, 0).failing) found.insert(canary.number);
  }
  EXPECT_EQ(found, (std::set<uint32_t>{1, 7, 9, 10, 14, 15, 17, 18, 32}));
}

TEST(Canary, AnExhaustiveWalkFindsWhatIsWrongWithAFailingStep) {
  std::set<uint32_t> found;
  for (const CanaryName& canary : kCanaries) {
    if (canary.number != 13 && canary.number != 20) continue;
    for (const uint64_t step : {84u, 147u, 234u}) {
      if (found.count(canary.number) != 0) continue;
      if (Walk(canary, step).failing) found.insert(canary.number);
    }
  }
  EXPECT_EQ(found, (std::set<uint32_t>{13, 20}));
}

TEST(Canary, AFailingListOfChoicesIsMadeSmallAndFailsAgain) {
  ExhaustivePlan plan;
  plan.space.cpus = 2;
  plan.space.strategy = sequence::StrategyId::kKick;
  plan.space.canary = 15;
  plan.preemptions = 2;
  const std::atomic<bool> go{false};
  const ExhaustiveResult result = RunExhaustive(plan, go, nullptr);
  ASSERT_TRUE(result.failing);
  Explorer explorer;
  ExploreCase failing = ExhaustiveCase(plan);
  failing.choices = *result.failing;
  std::string wrong;
  const ChoiceList small = ShrinkChoices(explorer, failing, &wrong);
  EXPECT_FALSE(wrong.empty());
  failing.choices = *ParseChoices("--replay", ChoicesText(small));
  EXPECT_EQ(explorer.Run(failing), wrong);
  EXPECT_NE(DescribeChoices(explorer.ChoicePoints()).find("stands back"), std::string::npos);
  const auto deviations = [](const ChoiceList& list) {
    return list.size() - static_cast<size_t>(std::count(list.begin(), list.end(), 0));
  };
  EXPECT_LE(deviations(small), deviations(*result.failing));

  // The command's replay of the list ends with the status that a failing schedule has.
  RawExplore raw;
  raw.schedule = "exhaustive";
  raw.cpus = "2";
  raw.strategy = "kick";
  raw.store_buffer = "off";
  raw.replay = ChoicesText(small);
  absl::StatusOr<ExploreFlags> flags = CheckExplore(raw);
  ASSERT_TRUE(flags.ok()) << flags.status();
  flags->exhaustive->plan.space.canary = 15;
  EXPECT_EQ(ExploreCommand(*flags), static_cast<int>(ExitCode::kGuestFault));
  flags->exhaustive->plan.space.canary = 0;
  EXPECT_EQ(ExploreCommand(*flags), static_cast<int>(ExitCode::kOk)) << "the right code";
}

TEST(Canary, TheSameBuildWithoutOneFindsNothing) {
  Explorer explorer;
  for (uint64_t seed = 1; seed <= 5'000; ++seed) {
    const ExploreCase explored = CaseOf(seed, {});
    ASSERT_EQ(explorer.Run(explored), "") << Describe(explored);
  }
}

TEST(Canary, AFailingSeedFailsAgainAndIsMadeSmall) {
  ExploreSpace space;
  space.canary = 14;
  Explorer explorer;
  uint64_t seed = 1;
  while (explorer.Run(CaseOf(seed, space)).empty()) ++seed;
  const ExploreCase found = CaseOf(seed, space);
  const std::string wrong = explorer.Run(found);
  EXPECT_EQ(explorer.Run(found), wrong);
  std::string small_wrong;
  std::vector<std::string> left_out;
  const ExploreCase small = explorer.Shrink(found, &small_wrong, &left_out);
  EXPECT_EQ(FailureKind(small_wrong), FailureKind(wrong));
  EXPECT_LE(small.config.cpus, found.config.cpus);
  EXPECT_EQ(explorer.Run(small), small_wrong);

  // As a file it is the same case.
  const std::string file = SavedCaseJson(MakeSavedCase(seed, space, left_out));
  absl::StatusOr<SavedCase> saved = ParseSavedCase(file, "case.json");
  ASSERT_TRUE(saved.ok()) << saved.status();
  saved->space.canary = space.canary;
  const absl::StatusOr<ExploreCase> read = CaseOf(*saved, "case.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(Describe(*read), Describe(small));
  EXPECT_EQ(explorer.Run(*read), small_wrong);
  saved->left_out.push_back("gravity");
  EXPECT_FALSE(CaseOf(*saved, "case.json").ok());
  EXPECT_FALSE(ParseSavedCase("{}", "x.json").ok());
}

TEST(Canary, AKindOfFailureIsWhatItSaysWithoutItsFigures) {
  EXPECT_EQ(FailureKind("CPU 1 is not online and nobody says why (halted, IF=0)"),
            FailureKind("CPU 12 is not online and nobody says why (running, IF=1)"));
  EXPECT_NE(FailureKind("CPU 1 failed and counts as online"),
            FailureKind("CPU 1 is not online and nobody says why (halted, IF=0)"));
  EXPECT_NE(FailureKind("handshake of CPU 1: alive to kicked"),
            FailureKind("handshake of CPU 1: alive to dead"));
}

// A small case shows what was found, not whatever else fails on the way.
TEST(Canary, ASmallCaseFailsInTheSameWay) {
  Explorer explorer;
  uint32_t shrunk = 0;
  for (const CanaryName& canary : kCanaries) {
    ExploreSpace space;
    space.canary = canary.number;
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      const ExploreCase found = CaseOf(seed, space);
      const std::string wrong = explorer.Run(found);
      if (wrong.empty()) continue;
      std::string small_wrong;
      const ExploreCase small = explorer.Shrink(found, &small_wrong);
      EXPECT_EQ(FailureKind(small_wrong), FailureKind(wrong)) << canary.name << ", seed " << seed;
      EXPECT_EQ(explorer.Run(small), small_wrong);
      ++shrunk;
    }
  }
  EXPECT_GT(shrunk, 100u);
}

// `sipi explore --save=FILE`, then `sipi explore --replay=FILE`, as the command runs them.
TEST(Canary, TheCommandSavesAFailingCaseAndReplaysIt) {
  const std::string path = ::testing::TempDir() + "canary_case.json";
  std::remove(path.c_str());
  RawExplore raw;
  raw.schedules = "1000";
  raw.jobs = "1";
  raw.save = path;
  raw.quiet = true;
  absl::StatusOr<ExploreFlags> flags = CheckExplore(raw);
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(ExploreCommand(*flags), static_cast<int>(ExitCode::kOk));
  EXPECT_FALSE(ReadTextFile(path, 1 << 20).ok()) << "nothing was wrong";

  flags->plan.space.canary = 14;
  EXPECT_EQ(ExploreCommand(*flags), static_cast<int>(ExitCode::kGuestFault));
  const absl::StatusOr<std::string> text = ReadTextFile(path, 1 << 20);
  ASSERT_TRUE(text.ok()) << text.status();
  const absl::StatusOr<SavedCase> saved = ParseSavedCase(*text, path);
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_FALSE(saved->left_out.empty());

  RawExplore again;
  again.replay = path;
  flags = CheckExplore(again);
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(ExploreCommand(*flags), static_cast<int>(ExitCode::kOk)) << "the right code";
  flags->plan.space.canary = 14;
  EXPECT_EQ(ExploreCommand(*flags), static_cast<int>(ExitCode::kGuestFault));

  flags->replay_file = path + ".none";
  EXPECT_EQ(ExploreCommand(*flags), static_cast<int>(ExitCode::kUsage));
}

// An AP that comes alive about when it gets its second chance. One in ten thousand random schedules
// has it; a walk with that fault meets it at once.
TEST(Canary, AWalkWithALateApFindsAnInitToOneThatMayBeAlive) {
  ExhaustivePlan plan;
  plan.space.cpus = 2;
  plan.space.strategy = sequence::StrategyId::kTree;
  plan.preemptions = 2;
  plan.fault = {.kind = abi::Fault::kLate, .cpu = 1, .value = 20'000};
  const std::atomic<bool> go{false};
  EXPECT_FALSE(RunExhaustive(plan, go, nullptr).failing);
  plan.space.canary = 22;
  const ExhaustiveResult result = RunExhaustive(plan, go, nullptr);
  ASSERT_TRUE(result.failing);
  std::printf("INIT to a CPU that may be alive: 2 CPUs, late AP %llu  %s\n",
              static_cast<unsigned long long>(result.schedules), result.wrong.c_str());
}

}  // namespace
}  // namespace sipi
