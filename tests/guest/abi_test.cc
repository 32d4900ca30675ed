// guest/abi: the handshake's table and the names that files carry.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "guest/abi/boot_params.h"
#include "guest/abi/cpuhp_state.h"
#include "guest/abi/handshake.h"
#include "guest/abi/percpu.h"
#include "guest/abi/startup_fault.h"
#include "guest/abi/trace.h"

namespace sipi::abi {
namespace {

constexpr SyncState kAll[] = {SyncState::kDead,  SyncState::kKicked,       SyncState::kShouldDie,
                              SyncState::kAlive, SyncState::kShouldOnline, SyncState::kOnline};

TEST(Handshake, TheWayUpIsAllowedStepByStep) {
  EXPECT_TRUE(SyncTransitionAllowed(SyncState::kDead, SyncState::kKicked));
  EXPECT_TRUE(SyncTransitionAllowed(SyncState::kKicked, SyncState::kAlive));
  EXPECT_TRUE(SyncTransitionAllowed(SyncState::kAlive, SyncState::kShouldOnline));
  EXPECT_TRUE(SyncTransitionAllowed(SyncState::kShouldOnline, SyncState::kOnline));
}

TEST(Handshake, NoStepOfTheWayUpCanBeSkipped) {
  EXPECT_FALSE(SyncTransitionAllowed(SyncState::kDead, SyncState::kAlive));
  EXPECT_FALSE(SyncTransitionAllowed(SyncState::kKicked, SyncState::kShouldOnline));
  EXPECT_FALSE(SyncTransitionAllowed(SyncState::kKicked, SyncState::kOnline));
  EXPECT_FALSE(SyncTransitionAllowed(SyncState::kAlive, SyncState::kOnline));
}

TEST(Handshake, OnlyTheControlCpuCancelsAndOnlyAParkedApIsDead) {
  for (SyncState from : kAll) {
    EXPECT_EQ(SyncTransitionAllowed(from, SyncState::kDead),
              from == SyncState::kShouldDie || from == SyncState::kKicked)
        << Name(from);
  }
  EXPECT_TRUE(SyncTransitionAllowed(SyncState::kKicked, SyncState::kShouldDie));
  EXPECT_FALSE(SyncTransitionAllowed(SyncState::kDead, SyncState::kShouldDie));
}

TEST(Handshake, ALateApCannotComeAliveAfterItsCancellation) {
  EXPECT_FALSE(SyncTransitionAllowed(SyncState::kShouldDie, SyncState::kAlive));
}

TEST(Handshake, AFailedCpuMayBeKickedAgainAndAnOnlineOneMayNot) {
  EXPECT_TRUE(SyncTransitionAllowed(SyncState::kKicked, SyncState::kKicked));
  EXPECT_TRUE(SyncTransitionAllowed(SyncState::kShouldDie, SyncState::kKicked));
  EXPECT_FALSE(SyncTransitionAllowed(SyncState::kOnline, SyncState::kKicked));
}

TEST(Names, OfTraceEventsAreUniqueAndNeverTheUnknownMark) {
  std::set<std::string> seen;
  for (uint16_t i = 0; i < 256; ++i) {
    const std::string name = Name(static_cast<TraceEvent>(i));
    if (name == "?") continue;
    EXPECT_TRUE(seen.insert(name).second) << name;
  }
  EXPECT_GE(seen.size(), 50u);
}

TEST(Names, OfCpuhpStatesAreThoseOfLinuxSysfs) {
  EXPECT_STREQ(Name(CpuhpState::kCreateThreads), "threads:prepare");
  EXPECT_STREQ(Name(CpuhpState::kKickAp), "cpu:kick_ap");
  EXPECT_STREQ(Name(CpuhpState::kBringupCpu), "cpu:bringup");
  EXPECT_STREQ(Name(CpuhpState::kApActive), "sched:active");
}

TEST(Layout, SlotsDoNotShareCacheLines) {
  EXPECT_EQ(sizeof(CpuSlot), 128u);
  EXPECT_EQ(alignof(CpuSlot), 128u);
}

TEST(StartupFault, ConcernsItsCpuAlone) {
  for (uint32_t kind = 1; kind <= static_cast<uint32_t>(Fault::kTscAhead); ++kind) {
    const FaultSpec fault{.kind = static_cast<Fault>(kind), .cpu = 3};
    EXPECT_TRUE(Concerns(fault, 3)) << kind;
    EXPECT_FALSE(Concerns(fault, 2)) << kind;
    EXPECT_FALSE(LosesInit(fault, 2)) << kind;
    EXPECT_FALSE(LosesSipi(fault, 2, 0)) << kind;
  }
  EXPECT_FALSE(Concerns(FaultSpec{.cpu = 3}, 3)) << "no fault";
}

TEST(StartupFault, EachLosesItsOwnMessages) {
  struct Row {
    Fault kind;
    bool init, first, second, third;
  };
  constexpr Row kRows[] = {{Fault::kNoStart, false, true, true, true},
                           {Fault::kLostInit, true, false, false, false},
                           {Fault::kLostSipi1, false, true, false, false},
                           {Fault::kLostSipi2, false, false, true, false},
                           {Fault::kLostSipis, false, true, true, true},
                           {Fault::kHang, false, false, false, false}};
  for (const Row& row : kRows) {
    const FaultSpec fault{.kind = row.kind, .cpu = 1};
    EXPECT_EQ(LosesInit(fault, 1), row.init) << static_cast<int>(row.kind);
    EXPECT_EQ(LosesSipi(fault, 1, 0), row.first) << static_cast<int>(row.kind);
    EXPECT_EQ(LosesSipi(fault, 1, 1), row.second) << static_cast<int>(row.kind);
    EXPECT_EQ(LosesSipi(fault, 1, 2), row.third) << static_cast<int>(row.kind);
  }
}

}  // namespace
}  // namespace sipi::abi
