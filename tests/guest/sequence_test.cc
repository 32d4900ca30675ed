// guest/sequence: what each strategy asks for, in which order. A recording Ops stands in for the
// machine.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "guest/sequence/driver.h"

namespace sipi::sequence {
namespace {

// Writes down every call. CPUs with an odd number are siblings.
class Recorder {
 public:
  std::vector<std::string> log;
  std::vector<uint32_t> upcoming;

  void PassBegin(uint32_t i) { log.push_back("pass " + std::to_string(i)); }
  void PassEnd(uint32_t) {}
  bool InScope(CpuNumber cpu, Scope scope) const {
    if (scope == Scope::kAll) return true;
    return (cpu.value % 2 == 0) == (scope == Scope::kPrimaries);
  }
  void PrepareKick(CpuNumber cpu) { log.push_back("prepare " + std::to_string(cpu.value)); }
  void BringTo(CpuNumber cpu, Goal goal) {
    constexpr const char* kGoals[] = {"kicked", "alive", "online"};
    log.push_back(std::string(kGoals[static_cast<int>(goal)]) + " " + std::to_string(cpu.value));
  }
  void Upcoming(CpuNumber cpu) { upcoming.push_back(cpu.value); }
  void KickBroadcast() { log.push_back("broadcast"); }
  void KickTreeRoots(uint32_t count) { log.push_back("tree " + std::to_string(count)); }
  void WaitAllOnline(Scope) { log.push_back("wait all"); }

  void SendInit(CpuNumber cpu) { log.push_back("INIT " + std::to_string(cpu.value)); }
  void SendInitDeassert(CpuNumber cpu) { log.push_back("deassert " + std::to_string(cpu.value)); }
  void SendStartup(CpuNumber cpu, uint32_t i) {
    log.push_back("SIPI" + std::to_string(i) + " " + std::to_string(cpu.value));
  }
  void InitDelay(uint32_t us) { log.push_back("init delay " + std::to_string(us)); }
  void DelayUs(uint32_t us) { log.push_back("delay " + std::to_string(us)); }
};

std::vector<std::string> Calls(StrategyId id, const std::vector<uint32_t>& order) {
  Recorder ops;
  RunStrategy(ops, MakeStrategy(id), order.data(), static_cast<uint32_t>(order.size()));
  return ops.log;
}

using Log = std::vector<std::string>;

TEST(Strategy, SerialTakesEachCpuOnlineBeforeTheNext) {
  EXPECT_EQ(Calls(StrategyId::kSerial, {1, 2, 3}),
            (Log{"pass 0", "online 1", "online 2", "online 3"}));
}

TEST(Strategy, KickDiffersFromSerialByOnePassOnly) {
  EXPECT_EQ(Calls(StrategyId::kKick, {1, 2}),
            (Log{"pass 0", "kicked 1", "kicked 2", "pass 1", "online 1", "online 2"}));
}

TEST(Strategy, KickWaitLetsAllGoBeforeTheFirstIsOnline) {
  EXPECT_EQ(Calls(StrategyId::kKickWait, {1, 2}),
            (Log{"pass 0", "kicked 1", "kicked 2", "pass 1", "alive 1", "alive 2", "pass 2",
                 "online 1", "online 2"}));
}

TEST(Strategy, PrimaryFirstHasEveryPrimaryOnlineBeforeASiblingIsKicked) {
  EXPECT_EQ(Calls(StrategyId::kPrimaryFirst, {1, 2, 3, 4}),
            (Log{"pass 0", "kicked 2", "kicked 4", "pass 1", "online 2", "online 4", "pass 2",
                 "kicked 1", "kicked 3", "pass 3", "online 1", "online 3"}));
}

TEST(Strategy, FullKicksAllAndThenOnlyWaits) {
  EXPECT_EQ(Calls(StrategyId::kFull, {1, 2}),
            (Log{"pass 0", "kicked 1", "kicked 2", "pass 1", "wait all"}));
}

TEST(Strategy, BroadcastPreparesAllBeforeTheOneKick) {
  EXPECT_EQ(Calls(StrategyId::kBroadcast, {1, 2}),
            (Log{"pass 0", "prepare 1", "prepare 2", "broadcast", "pass 1", "wait all"}));
}

TEST(Strategy, TreePreparesAllBeforeTheRootsAreKicked) {
  EXPECT_EQ(Calls(StrategyId::kTree, {1, 2}),
            (Log{"pass 0", "prepare 1", "prepare 2", "tree 3", "pass 1", "wait all"}));
}

TEST(Strategy, TheOrderIsTheCallersNotTheNumbers) {
  EXPECT_EQ(Calls(StrategyId::kSerial, {3, 1, 2}),
            (Log{"pass 0", "online 3", "online 1", "online 2"}));
}

TEST(Strategy, EachCpuButTheFirstOfAPassIsAnnouncedWhileItsPredecessorComesUp) {
  Recorder ops;
  const std::vector<uint32_t> order{3, 1, 2};
  RunStrategy(ops, MakeStrategy(StrategyId::kKick), order.data(), 3);
  EXPECT_EQ(ops.upcoming, (std::vector<uint32_t>{1, 2, 1, 2}));
}

TEST(Strategy, OnlyConcurrentOnesLetApsRunOnTheirOwn) {
  for (uint32_t i = 0; i < kStrategyCount; ++i) {
    const auto id = static_cast<StrategyId>(i);
    const bool concurrent =
        id == StrategyId::kFull || id == StrategyId::kBroadcast || id == StrategyId::kTree;
    EXPECT_EQ(MakeStrategy(id).ApsRunOnTheirOwn(), concurrent) << BaseName(id);
  }
}

TEST(KickSequence, IsInitThenDelayThenTwoSipisWithTheirDelays) {
  Recorder ops;
  KickSequence(ops, KickTiming{.init_delay_us = 10000}, CpuNumber(5));
  EXPECT_EQ(ops.log, (Log{"INIT 5", "init delay 10000", "SIPI0 5", "delay 10", "delay 10",
                          "SIPI1 5", "delay 10", "delay 10"}));
}

TEST(KickSequence, SendsLinuxDeassertAfterTheInitDelayWhenAsked) {
  Recorder ops;
  KickSequence(ops, KickTiming{.init_delay_us = 0, .sipi_count = 1, .init_deassert = 1},
               CpuNumber(5));
  EXPECT_EQ(ops.log,
            (Log{"INIT 5", "init delay 0", "deassert 5", "SIPI0 5", "delay 10", "delay 10"}));
}

// Each rank but 0 is woken exactly once, by one that was woken before, and no later than round
// ceil(log2(count)).
class TreeTest : public testing::TestWithParam<uint32_t> {};

TEST_P(TreeTest, WakesEveryRankOnceInLogarithmicallyManyRounds) {
  const uint32_t count = GetParam();
  std::map<uint32_t, uint32_t> round{{0, 0}};
  for (uint32_t rank = 0; rank < count; ++rank) {
    ASSERT_TRUE(round.contains(rank))
        << "rank " << rank << " wakes others but was not woken by a lower one";
    uint32_t sent = 0;
    ForEachTreeChild(rank, count, [&](uint32_t child) {
      EXPECT_TRUE(round.emplace(child, round[rank] + ++sent).second) << child << " woken twice";
    });
  }
  EXPECT_EQ(round.size(), count);
  uint32_t depth = 0;
  for (const auto& [rank, r] : round) depth = std::max(depth, r);
  uint32_t log2 = 0;
  while ((uint64_t{1} << log2) < count) ++log2;
  EXPECT_EQ(depth, log2);
}

INSTANTIATE_TEST_SUITE_P(Counts, TreeTest,
                         testing::Values(1, 2, 3, 4, 5, 16, 17, 64, 255, 1000, 1024));

}  // namespace
}  // namespace sipi::sequence
