// INIT and SIPI: what counts and in which order (cases A1 to A4, A6).
#include "apic/model/init_sipi.h"

#include <gtest/gtest.h>

namespace sipi::apic {
namespace {

using Kind = StartupAction::Kind;

constexpr StartupAction kNothing{};
constexpr StartupAction kInit{Kind::kInit, Vector()};
constexpr StartupAction Start(uint8_t v) { return {Kind::kStart, Vector(v)}; }
constexpr StartupAction InitThenStart(uint8_t v) { return {Kind::kInitThenStart, Vector(v)}; }

// An AP that has been started once.
void StartUp(StartupMailbox& ap) {
  ap.PostSipi(Vector(8));
  ASSERT_EQ(ap.Take(), Start(8));
}

TEST(InitSipiTest, ApWaitsFromPowerUpAndBspRuns) {
  EXPECT_TRUE(StartupMailbox(false).WaitsForSipi());
  EXPECT_FALSE(StartupMailbox(true).WaitsForSipi());
}

TEST(InitSipiTest, InitAndSipiPostedBeforeTheTargetRunsBothCount) {
  StartupMailbox ap(false);
  EXPECT_TRUE(ap.PostInit());
  EXPECT_TRUE(ap.PostSipi(Vector(0x9a)));
  EXPECT_FALSE(ap.PostSipi(Vector(0x9a)));
  EXPECT_EQ(ap.Take(), InitThenStart(0x9a));
  EXPECT_EQ(ap.Take(), kNothing);
  EXPECT_FALSE(ap.WaitsForSipi());
}

TEST(InitSipiTest, SipiAloneStartsAWaitingAp) {
  StartupMailbox ap(false);
  EXPECT_TRUE(ap.PostSipi(Vector(8)));
  EXPECT_EQ(ap.Take(), Start(8));
}

TEST(InitSipiTest, InitAndSipiTakenOneByOneCountInOrder) {
  StartupMailbox ap(false);
  StartUp(ap);
  ap.PostInit();
  EXPECT_EQ(ap.Take(), kInit);
  EXPECT_TRUE(ap.WaitsForSipi());
  ap.PostSipi(Vector(8));
  EXPECT_EQ(ap.Take(), Start(8));
}

TEST(InitSipiTest, SecondSipiIsIgnoredOnceStarted) {
  StartupMailbox ap(false);
  StartUp(ap);
  EXPECT_FALSE(ap.PostSipi(Vector(9)));
  EXPECT_EQ(ap.Take(), kNothing);
}

TEST(InitSipiTest, FirstPendingSipiWins) {
  StartupMailbox ap(false);
  ap.PostSipi(Vector(8));
  EXPECT_FALSE(ap.PostSipi(Vector(9)));
  EXPECT_EQ(ap.Take(), Start(8));
}

// Case A3 word for word.
TEST(InitSipiTest, DroppedSipiDoesNotLingerUntilALaterInit) {
  StartupMailbox ap(false);
  ap.PostInit();
  ap.PostSipi(Vector(8));
  EXPECT_EQ(ap.Take(), InitThenStart(8));
  ap.PostSipi(Vector(9));
  ap.PostSipi(Vector(8));
  EXPECT_EQ(ap.Take(), kNothing);
  ap.PostInit();
  ap.PostInit();
  ap.PostSipi(Vector(8));
  EXPECT_EQ(ap.Take(), InitThenStart(8));
  EXPECT_EQ(ap.Take(), kNothing);
}

TEST(InitSipiTest, InitDiscardsAPendingSipi) {
  StartupMailbox ap(false);
  ap.PostSipi(Vector(8));
  ap.PostInit();
  EXPECT_EQ(ap.Take(), kInit);
  EXPECT_TRUE(ap.WaitsForSipi());
  ap.PostSipi(Vector(9));
  EXPECT_EQ(ap.Take(), Start(9));
}

TEST(InitSipiTest, InitResetsAWaitingApAgain) {
  StartupMailbox ap(false);
  ap.PostInit();
  EXPECT_EQ(ap.Take(), kInit);
  ap.PostInit();
  EXPECT_EQ(ap.Take(), kInit);
  EXPECT_TRUE(ap.WaitsForSipi());
}

TEST(InitSipiTest, TwoInitsBeforeTheTargetLooksAreOne) {
  StartupMailbox ap(false);
  StartUp(ap);
  EXPECT_TRUE(ap.PostInit());
  EXPECT_FALSE(ap.PostInit());
  EXPECT_EQ(ap.Take(), kInit);
  EXPECT_EQ(ap.Take(), kNothing);
}

// Case A2: INIT, SIPI, SIPI against a running target, however its look-ups fall in between.
TEST(InitSipiTest, EachInitSipiSipiGivesExactlyOneRestart) {
  for (int looks = 0; looks < 8; ++looks) {
    StartupMailbox ap(false);
    StartUp(ap);
    int starts = 0;
    const auto look = [&] {
      const Kind kind = ap.Take().kind;
      starts += kind == Kind::kStart || kind == Kind::kInitThenStart;
    };
    ap.PostInit();
    if (looks & 1) look();
    ap.PostSipi(Vector(8));
    if (looks & 2) look();
    ap.PostSipi(Vector(8));
    if (looks & 4) look();
    look();
    EXPECT_EQ(starts, 1) << looks;
  }
}

TEST(InitSipiTest, InitRestartsTheBspWithoutParkingIt) {
  StartupMailbox bsp(true);
  EXPECT_TRUE(bsp.PostInit());
  EXPECT_EQ(bsp.Take(), kInit);
  EXPECT_FALSE(bsp.WaitsForSipi());
}

TEST(InitSipiTest, SipiAfterInitIsDroppedByTheBsp) {
  StartupMailbox bsp(true);
  bsp.PostInit();
  EXPECT_FALSE(bsp.PostSipi(Vector(8)));
  EXPECT_EQ(bsp.Take(), kInit);
  EXPECT_EQ(bsp.Take(), kNothing);
}

TEST(InitSipiTest, SipiToTheRunningBspIsDropped) {
  EXPECT_FALSE(StartupMailbox(true).PostSipi(Vector(8)));
}

TEST(InitSipiTest, BspFlagThatIsClearedMakesInitPark) {
  StartupMailbox cpu(true);
  cpu.SetBsp(false);
  cpu.PostInit();
  EXPECT_EQ(cpu.Take(), kInit);
  EXPECT_TRUE(cpu.WaitsForSipi());
}

TEST(InitSipiTest, BspFlagThatIsSetVoidsAPendingSipi) {
  StartupMailbox cpu(false);
  StartUp(cpu);
  cpu.PostInit();
  cpu.PostSipi(Vector(8));
  cpu.SetBsp(true);
  EXPECT_EQ(cpu.Take(), kInit);
  EXPECT_FALSE(cpu.WaitsForSipi());
}

TEST(InitSipiTest, EveryVectorArrives) {
  for (int vector = 0; vector < 256; ++vector) {
    StartupMailbox ap(false);
    ap.PostSipi(Vector(static_cast<uint8_t>(vector)));
    EXPECT_EQ(ap.Take(), Start(static_cast<uint8_t>(vector)));
  }
}

TEST(InitSipiTest, PendingTellsWhetherTakeWillAct) {
  StartupMailbox ap(false);
  EXPECT_FALSE(ap.Pending());
  ap.PostInit();
  EXPECT_TRUE(ap.Pending());
  ap.Take();
  EXPECT_FALSE(ap.Pending());
}

}  // namespace
}  // namespace sipi::apic
