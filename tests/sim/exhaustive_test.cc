// Exhaustive schedules: the walk through a tree of choices, and bring-up of two CPUs.
#include "vmm/explore/exhaustive.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <utility>

#include "tests/support/sanitized.h"
#include "vmm/explore/explorer.h"

namespace sipi {
namespace {

using Points = std::vector<sim::ChoicePoint>;

// A toy: `alternatives` after each list of choices; 0: a leaf. Follows `choices`, then zeros.
using Toy = std::function<uint16_t(const ChoiceList&)>;
Points RunToy(const Toy& toy, const ChoiceList& choices) {
  Points points;
  ChoiceList taken;
  while (const uint16_t alternatives = toy(taken)) {
    sim::ChoicePoint point;
    point.alternatives = alternatives;
    point.taken = taken.size() < choices.size() ? choices[taken.size()] : uint16_t{0};
    EXPECT_LT(point.taken, alternatives);
    points.push_back(point);
    taken.push_back(point.taken);
  }
  return points;
}

ChoiceList Taken(const Points& points) {
  ChoiceList list;
  for (const sim::ChoicePoint& point : points) list.push_back(point.taken);
  return list;
}

// Uneven: after a 1 there is one choice less, after a 2 three more of two alternatives each.
uint16_t Uneven(const ChoiceList& taken) {
  size_t depth = 3;
  for (const uint16_t each : taken) {
    if (each == 1) --depth;
    if (each == 2) depth += 3;
  }
  if (taken.size() >= std::min<size_t>(depth, 6)) return 0;
  return taken.size() < 2 ? 3 : 2;
}

uint64_t Leaves(const Toy& toy, ChoiceList taken) {
  const uint16_t alternatives = toy(taken);
  if (alternatives == 0) return 1;
  uint64_t sum = 0;
  for (uint16_t each = 0; each < alternatives; ++each) {
    taken.push_back(each);
    sum += Leaves(toy, taken);
    taken.pop_back();
  }
  return sum;
}

TEST(ChoiceTree, EveryLeafIsMetOnceInOrder) {
  std::set<ChoiceList> met;
  ChoiceList last;
  std::optional<ChoiceList> next = ChoiceList{};
  while (next) {
    const Points points = RunToy(Uneven, *next);
    const ChoiceList leaf = Taken(points);
    EXPECT_TRUE(met.insert(leaf).second);
    EXPECT_TRUE(met.size() == 1 || last < leaf);
    last = leaf;
    next = NextChoices(points, 0);
  }
  EXPECT_EQ(met.size(), Leaves(Uneven, {}));
  EXPECT_GT(met.size(), 30u);
}

TEST(ChoiceTree, ItsSubtreesHaveEveryOtherLeafOnce) {
  const Points first = RunToy(Uneven, {});
  std::set<ChoiceList> met = {Taken(first)};
  for (const ChoiceList& subtree : Subtrees(first)) {
    std::optional<ChoiceList> next = subtree;
    while (next) {
      const Points points = RunToy(Uneven, *next);
      EXPECT_TRUE(met.insert(Taken(points)).second);
      next = NextChoices(points, subtree.size());
    }
  }
  EXPECT_EQ(met.size(), Leaves(Uneven, {}));
}

TEST(ChoiceTree, AListIsReadAsItIsWritten) {
  const ChoiceList list = {0, 0, 2, 0, 1};
  EXPECT_EQ(ChoicesText(list), "2:2,4:1");
  EXPECT_EQ(*ParseChoices("--replay", "2:2,4:1"), list);
  EXPECT_EQ(ChoicesText({0, 0}), "0:0");
  for (const char* text : {"", "7", "1:2:3", "a:1", "1:70000", "1:1,,2:1", "99999999:1"}) {
    const absl::StatusOr<ChoiceList> parsed = ParseChoices("--replay", text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.status().message().substr(0, 9), "--replay:");
  }
}

ExhaustivePlan PlanOf(sequence::StrategyId strategy, uint32_t cpus, uint32_t preemptions) {
  ExhaustivePlan plan;
  plan.space.cpus = cpus;
  plan.space.strategy = strategy;
  plan.preemptions = preemptions;
  return plan;
}

ExhaustiveResult RunPlan(const ExhaustivePlan& plan) {
  const std::atomic<bool> go{false};
  return RunExhaustive(plan, go, nullptr);
}

// How many schedules there are within so many preemptions, as docs/simulator.md lists them. They
// change with the kernel's steps; then the document's do.
struct Walk {
  uint32_t cpus;
  sequence::StrategyId strategy;
  uint32_t preemptions;
  uint64_t schedules;
};

TEST(Exhaustive, TheRightCodeHasNoFailingSchedule) {
  using sequence::StrategyId;
  constexpr Walk kWalks[] = {
      {2, StrategyId::kSerial, 1, 48}, {2, StrategyId::kSerial, 2, 1600},
      {2, StrategyId::kKick, 1, 56},   {2, StrategyId::kKick, 2, 1997},
      {2, StrategyId::kFull, 1, 46},   {2, StrategyId::kFull, 2, 1139},
      {3, StrategyId::kSerial, 1, 94}, {3, StrategyId::kSerial, 2, 5305},
      {3, StrategyId::kKick, 1, 195},  {3, StrategyId::kKick, 2, 18862},
      {3, StrategyId::kFull, 1, 88},   {3, StrategyId::kFull, 2, 4074},
  };
  for (const Walk& walk : kWalks) {
    if (kSanitized && walk.preemptions > 1) continue;
    const ExhaustiveResult result = RunPlan(PlanOf(walk.strategy, walk.cpus, walk.preemptions));
    EXPECT_EQ(result.wrong, "") << ChoicesText(result.failing.value_or(ChoiceList{}));
    EXPECT_TRUE(result.complete);
    EXPECT_EQ(result.schedules, walk.schedules)
        << walk.cpus << " CPUs, strategy " << static_cast<uint32_t>(walk.strategy) << ", "
        << walk.preemptions << " preemptions";
  }
}

TEST(Exhaustive, TheRightCodeHasNoFailingScheduleWithAStoreBuffer) {
  for (const auto strategy : {sequence::StrategyId::kSerial, sequence::StrategyId::kFull}) {
    ExhaustivePlan plan = PlanOf(strategy, 2, 2);
    plan.store_buffer = true;
    const ExhaustiveResult result = RunPlan(plan);
    EXPECT_EQ(result.wrong, "") << ChoicesText(result.failing.value_or(ChoiceList{}));
    EXPECT_TRUE(result.complete);
    EXPECT_GT(result.schedules, 1'000u);
  }
}

TEST(Exhaustive, ThereAreAsManySchedulesForAnyNumberOfJobs) {
  ExhaustivePlan plan = PlanOf(sequence::StrategyId::kFull, 2, 2);
  const uint64_t alone = RunPlan(plan).schedules;
  plan.jobs = 3;
  EXPECT_EQ(RunPlan(plan).schedules, alone);
}

TEST(Exhaustive, WithoutPreemptionsOnlyWhoIsNextIsChosen) {
  EXPECT_EQ(RunPlan(PlanOf(sequence::StrategyId::kSerial, 2, 0)).schedules, 1u);
  const uint64_t one = RunPlan(PlanOf(sequence::StrategyId::kSerial, 2, 1)).schedules;
  const uint64_t two = RunPlan(PlanOf(sequence::StrategyId::kSerial, 2, 2)).schedules;
  EXPECT_GT(one, 1u);
  EXPECT_GT(two, one);
}

TEST(Exhaustive, AWalkThatIsCutSaysSo) {
  ExhaustivePlan plan = PlanOf(sequence::StrategyId::kFull, 2, 2);
  plan.max_schedules = 100;
  const ExhaustiveResult cut = RunPlan(plan);
  EXPECT_EQ(cut.schedules, 100u);
  EXPECT_FALSE(cut.complete);
  const std::atomic<bool> stop{true};
  EXPECT_FALSE(RunExhaustive(plan, stop, nullptr).complete);
}

TEST(Exhaustive, AListThatDoesNotFitIsRefused) {
  ExploreCase explored = ExhaustiveCase(PlanOf(sequence::StrategyId::kFull, 2, 1));
  explored.choices = {7};
  Explorer explorer;
  EXPECT_NE(explorer.Run(explored).find("another case's"), std::string::npos);
}

TEST(Exhaustive, AGivenFaultIsMetInEverySchedule) {
  ExhaustivePlan plan = PlanOf(sequence::StrategyId::kFull, 2, 1);
  plan.fault.cpu = 1;
  using Fault = abi::Fault;
  for (const auto& [kind, value] : {std::pair<Fault, uint64_t>{Fault::kFailStep, 83},
                                    {Fault::kFailStep, 234},
                                    {Fault::kLostSipi1, 0},
                                    {Fault::kNoStart, 0},
                                    {Fault::kLate, 20'000}}) {
    plan.fault.kind = kind;
    plan.fault.value = value;
    const ExhaustiveResult result = RunPlan(plan);
    EXPECT_EQ(result.wrong, "") << ChoicesText(result.failing.value_or(ChoiceList{}));
    EXPECT_TRUE(result.complete);
  }
}

// Two handshake time-outs late, an AP comes at the moment of its second chance: in some schedules
// it is alive before that reaches it.
TEST(Exhaustive, AnApThatComesAtItsSecondChanceIsNotStopped) {
  for (const auto strategy : {sequence::StrategyId::kTree, sequence::StrategyId::kSerial}) {
    for (const bool buffered : {false, true}) {
      ExhaustivePlan plan = PlanOf(strategy, 2, 2);
      plan.store_buffer = buffered;
      plan.fault = {.kind = abi::Fault::kLate, .cpu = 1, .value = 20'000};
      const ExhaustiveResult result = RunPlan(plan);
      EXPECT_EQ(result.wrong, "") << ChoicesText(result.failing.value_or(ChoiceList{}));
      EXPECT_TRUE(result.complete);
    }
  }
}

}  // namespace
}  // namespace sipi
