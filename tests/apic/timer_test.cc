// The APIC timer in its three modes, through the LVT.
#include "apic/regs/timer.h"

#include <gtest/gtest.h>

#include "tests/apic/apic_builders.h"

namespace sipi::apic {
namespace {

using Kind = WriteEffect::Kind;
constexpr Vector kTick(0xef);
constexpr uint32_t kOneShot = 0x000ef;
constexpr uint32_t kPeriodic = 0x200ef;
constexpr uint32_t kDeadline = 0x400ef;

// Divided by 1, so that a count is a nanosecond.
LocalApic TimerIn(uint32_t lvt, Time now = Time{}) {
  LocalApic apic = EnabledXApic();
  (void)apic.WriteMmio(0x320, lvt, now);
  (void)apic.WriteMmio(0x3e0, kTimerDivideBy1, now);
  return apic;
}

TEST(TimerTest, DivisorsFollowTheSdm) {
  EXPECT_EQ(TimerDivisor(0b0000), 2u);
  EXPECT_EQ(TimerDivisor(0b0001), 4u);
  EXPECT_EQ(TimerDivisor(0b0010), 8u);
  EXPECT_EQ(TimerDivisor(0b0011), 16u);
  EXPECT_EQ(TimerDivisor(0b1000), 32u);
  EXPECT_EQ(TimerDivisor(0b1001), 64u);
  EXPECT_EQ(TimerDivisor(0b1010), 128u);
  EXPECT_EQ(TimerDivisor(0b1011), 1u);
}

TEST(TimerTest, OneShotFiresOnceAtItsTime) {
  LocalApic apic = TimerIn(kOneShot);
  EXPECT_EQ(apic.WriteMmio(0x380, 1000, AtNs(50)).kind, Kind::kTimer);
  EXPECT_EQ(apic.NextDeadlineNs(AtNs(50)), 1050u);
  EXPECT_FALSE(apic.Advance(AtNs(1049)));
  EXPECT_TRUE(apic.Advance(AtNs(1050)));
  EXPECT_TRUE(apic.Pending(kTick));
  EXPECT_EQ(apic.NextDeadlineNs(AtNs(1050)), std::nullopt);
  EXPECT_FALSE(apic.Advance(AtNs(9999)));
}

TEST(TimerTest, CurrentCountGoesDownToZeroAndStays) {
  LocalApic apic = TimerIn(kOneShot);
  (void)apic.WriteMmio(0x380, 1000, AtNs(0));
  EXPECT_EQ(apic.ReadMmio(0x390, AtNs(0)), 1000u);
  EXPECT_EQ(apic.ReadMmio(0x390, AtNs(400)), 600u);
  EXPECT_EQ(apic.ReadMmio(0x390, AtNs(1000)), 0u);
  EXPECT_EQ(apic.ReadMmio(0x390, AtNs(2000)), 0u);
  EXPECT_EQ(apic.ReadMmio(0x380, AtNs(2000)), 1000u);
}

TEST(TimerTest, DivisorSlowsTheCount) {
  LocalApic apic = TimerIn(kOneShot);
  (void)apic.WriteMmio(0x3e0, kTimerDivideBy16, AtNs(0));
  (void)apic.WriteMmio(0x380, 100, AtNs(0));
  EXPECT_EQ(apic.ReadMmio(0x390, AtNs(160)), 90u);
  EXPECT_EQ(apic.NextDeadlineNs(AtNs(160)), 1600u);
}

TEST(TimerTest, CurrentCountChangesOnADividedTick) {
  LocalApic apic = TimerIn(kOneShot);
  (void)apic.WriteMmio(0x3e0, kTimerDivideBy16, AtNs(0));
  (void)apic.WriteMmio(0x380, 100, AtNs(0));
  EXPECT_EQ(apic.ReadMmio(0x390, AtNs(15)), 100u);
  EXPECT_EQ(apic.ReadMmio(0x390, AtNs(16)), 99u);
  EXPECT_EQ(apic.ReadMmio(0x390, AtNs(1599)), 1u);
}

// What is overdue when software changes the timer has happened all the same.
TEST(TimerTest, AnExpiryBeforeANewInitialCountCounts) {
  LocalApic apic = TimerIn(kOneShot);
  (void)apic.WriteMmio(0x380, 1000, AtNs(0));
  (void)apic.WriteMmio(0x380, 1000, AtNs(1500));
  EXPECT_TRUE(apic.Pending(kTick));
  EXPECT_EQ(apic.NextDeadlineNs(AtNs(1500)), 2500u);
}

TEST(TimerTest, AnExpiryBeforeANewDivisorCounts) {
  LocalApic apic = TimerIn(kPeriodic);
  (void)apic.WriteMmio(0x380, 1000, AtNs(0));
  (void)apic.WriteMmio(0x3e0, kTimerDivideBy16, AtNs(1500));
  EXPECT_TRUE(apic.Pending(kTick));
  EXPECT_EQ(apic.ReadMmio(0x390, AtNs(1500)), 500u);
}

TEST(TimerTest, AnExpiryBeforeANewTscDeadlineCounts) {
  LocalApic apic = TimerIn(kDeadline);
  (void)apic.WriteTscDeadline(100, Time{.ns = 0, .tsc = 50});
  (void)apic.WriteTscDeadline(1000, Time{.ns = 0, .tsc = 200});
  EXPECT_TRUE(apic.Pending(kTick));
  EXPECT_EQ(apic.ReadTscDeadline(Time{.ns = 0, .tsc = 200}), 1000u);
}

TEST(TimerTest, NewDivisorGoesOnFromTheCurrentCount) {
  LocalApic apic = TimerIn(kOneShot);
  (void)apic.WriteMmio(0x380, 1000, AtNs(0));
  (void)apic.WriteMmio(0x3e0, kTimerDivideBy16, AtNs(900));
  EXPECT_EQ(apic.ReadMmio(0x390, AtNs(900)), 100u);
  EXPECT_EQ(apic.NextDeadlineNs(AtNs(900)), 900u + 1600u);
}

TEST(TimerTest, PeriodicReloads) {
  LocalApic apic = TimerIn(kPeriodic);
  (void)apic.WriteMmio(0x380, 1000, AtNs(0));
  EXPECT_TRUE(apic.Advance(AtNs(1000)));
  EXPECT_EQ(apic.ReadMmio(0x390, AtNs(1000)), 1000u);
  EXPECT_EQ(apic.NextDeadlineNs(AtNs(1000)), 2000u);
}

TEST(TimerTest, LatePeriodicTicksMergeWithoutDrift) {
  LocalApic apic = TimerIn(kPeriodic);
  (void)apic.WriteMmio(0x380, 1000, AtNs(0));
  EXPECT_TRUE(apic.Advance(AtNs(5300)));
  EXPECT_EQ(apic.counters().timer_expired, 5u);
  EXPECT_EQ(apic.counters().accepted, 1u);
  EXPECT_EQ(apic.NextDeadlineNs(AtNs(5300)), 6000u);
}

TEST(TimerTest, InitialCountZeroStops) {
  LocalApic apic = TimerIn(kPeriodic);
  (void)apic.WriteMmio(0x380, 1000, AtNs(0));
  (void)apic.WriteMmio(0x380, 0, AtNs(500));
  EXPECT_EQ(apic.NextDeadlineNs(AtNs(500)), std::nullopt);
  EXPECT_FALSE(apic.Advance(AtNs(5000)));
}

TEST(TimerTest, NewInitialCountRestarts) {
  LocalApic apic = TimerIn(kOneShot);
  (void)apic.WriteMmio(0x380, 1000, AtNs(0));
  (void)apic.WriteMmio(0x380, 1000, AtNs(500));
  EXPECT_EQ(apic.NextDeadlineNs(AtNs(500)), 1500u);
}

TEST(TimerTest, MaskedTimerCountsButDoesNotInterrupt) {
  LocalApic apic = TimerIn(kPeriodic | kLvtMasked);
  (void)apic.WriteMmio(0x380, 1000, AtNs(0));
  EXPECT_EQ(apic.NextDeadlineNs(AtNs(0)), std::nullopt);
  EXPECT_EQ(apic.ReadMmio(0x390, AtNs(1300)), 700u);
  EXPECT_FALSE(apic.Pending(kTick));
}

TEST(TimerTest, ExpiryWhileMaskedIsLost) {
  LocalApic apic = TimerIn(kOneShot | kLvtMasked);
  (void)apic.WriteMmio(0x380, 1000, AtNs(0));
  (void)apic.WriteMmio(0x320, kOneShot, AtNs(2000));
  EXPECT_FALSE(apic.Advance(AtNs(3000)));
  EXPECT_FALSE(apic.Pending(kTick));
}

TEST(TimerTest, ExpiryBeforeMaskingStillCounts) {
  LocalApic apic = TimerIn(kOneShot);
  (void)apic.WriteMmio(0x380, 1000, AtNs(0));
  (void)apic.WriteMmio(0x320, kOneShot | kLvtMasked, AtNs(2000));
  EXPECT_TRUE(apic.Pending(kTick));
}

TEST(TimerTest, ExpiryBeforeSoftwareDisableStillCounts) {
  LocalApic apic = TimerIn(kOneShot);
  (void)apic.WriteMmio(0x380, 1000, AtNs(0));
  (void)apic.WriteMmio(0x0f0, 0xff, AtNs(2000));
  EXPECT_TRUE(apic.Pending(kTick));
}

// kvm-unit-tests, test_apic_change_mode: hardware counts on.
TEST(TimerTest, OneShotToPeriodicCountsOnAndThenReloads) {
  LocalApic apic = TimerIn(kOneShot);
  (void)apic.WriteMmio(0x380, 1000, AtNs(0));
  (void)apic.WriteMmio(0x320, kPeriodic, AtNs(600));
  EXPECT_EQ(apic.ReadMmio(0x390, AtNs(600)), 400u);
  EXPECT_TRUE(apic.Advance(AtNs(1000)));
  EXPECT_EQ(apic.NextDeadlineNs(AtNs(1000)), 2000u);
}

TEST(TimerTest, PeriodicToOneShotEndsAtTheNextExpiry) {
  LocalApic apic = TimerIn(kPeriodic);
  (void)apic.WriteMmio(0x380, 1000, AtNs(0));
  (void)apic.WriteMmio(0x320, kOneShot, AtNs(1600));
  EXPECT_EQ(apic.ReadMmio(0x390, AtNs(1600)), 400u);
  EXPECT_EQ(apic.ReadMmio(0x390, AtNs(2500)), 0u);
  EXPECT_EQ(apic.NextDeadlineNs(AtNs(2500)), std::nullopt);
}

TEST(TimerTest, EndedOneShotStaysEndedInPeriodicMode) {
  LocalApic apic = TimerIn(kOneShot);
  (void)apic.WriteMmio(0x380, 1000, AtNs(0));
  (void)apic.WriteMmio(0x320, kPeriodic, AtNs(1500));
  EXPECT_EQ(apic.ReadMmio(0x390, AtNs(1500)), 0u);
  EXPECT_EQ(apic.NextDeadlineNs(AtNs(1500)), std::nullopt);
}

TEST(TimerTest, TscDeadlineFiresAndClearsItself) {
  LocalApic apic = TimerIn(kDeadline);
  EXPECT_EQ(apic.WriteTscDeadline(5000, {.ns = 10, .tsc = 2000}).kind, Kind::kTimer);
  EXPECT_EQ(apic.ReadTscDeadline({.ns = 20, .tsc = 4999}), 5000u);
  EXPECT_FALSE(apic.Pending(kTick));
  EXPECT_TRUE(apic.Advance({.ns = 30, .tsc = 5000}));
  EXPECT_EQ(apic.ReadTscDeadline({.ns = 40, .tsc = 6000}), 0u);
  EXPECT_TRUE(apic.Pending(kTick));
}

TEST(TimerTest, TscDeadlineInThePastFiresAtOnce) {
  LocalApic apic = TimerIn(kDeadline);
  (void)apic.WriteTscDeadline(1000, {.ns = 10, .tsc = 2000});
  EXPECT_TRUE(apic.Pending(kTick));
}

TEST(TimerTest, TscDeadlineBecomesNanosecondsRoundedUp) {
  LocalApic apic(ApicId(0), true, {.tsc_hz = 3'000'000'000});
  (void)apic.WriteMmio(0x0f0, 0x1ff, Time{});
  (void)apic.WriteMmio(0x320, kDeadline, Time{});
  const Time now = {.ns = 100, .tsc = 50'000};
  (void)apic.WriteTscDeadline(50'000 + 3001, now);
  EXPECT_EQ(apic.NextDeadlineNs(now), 100u + 1001u);
}

TEST(TimerTest, FarTscDeadlineSaturates) {
  LocalApic apic = TimerIn(kDeadline);
  (void)apic.WriteTscDeadline(~uint64_t{0}, {.ns = 100, .tsc = 1});
  EXPECT_EQ(apic.NextDeadlineNs({.ns = 100, .tsc = 1}), ~uint64_t{0});
}

TEST(TimerTest, TscDeadlineZeroDisarms) {
  LocalApic apic = TimerIn(kDeadline);
  (void)apic.WriteTscDeadline(5000, Time{});
  (void)apic.WriteTscDeadline(0, Time{});
  EXPECT_EQ(apic.NextDeadlineNs(Time{}), std::nullopt);
}

TEST(TimerTest, TscDeadlineMsrIsIgnoredInOtherModes) {
  LocalApic apic = TimerIn(kOneShot);
  (void)apic.WriteTscDeadline(5000, Time{});
  EXPECT_EQ(apic.ReadTscDeadline(Time{}), 0u);
}

TEST(TimerTest, CountersAreDeadInTscDeadlineMode) {
  LocalApic apic = TimerIn(kDeadline);
  (void)apic.WriteMmio(0x380, 1000, AtNs(0));
  EXPECT_EQ(apic.ReadMmio(0x390, AtNs(0)), 0u);
  EXPECT_EQ(apic.NextDeadlineNs(AtNs(0)), std::nullopt);
}

TEST(TimerTest, LeavingTscDeadlineModeDisarms) {
  LocalApic apic = TimerIn(kDeadline);
  (void)apic.WriteTscDeadline(5000, Time{});
  (void)apic.WriteMmio(0x320, kOneShot, Time{});
  (void)apic.WriteMmio(0x320, kDeadline, Time{});
  EXPECT_EQ(apic.ReadTscDeadline(Time{}), 0u);
}

TEST(TimerTest, EnteringTscDeadlineModeStopsTheCount) {
  LocalApic apic = TimerIn(kPeriodic);
  (void)apic.WriteMmio(0x380, 1000, AtNs(0));
  (void)apic.WriteMmio(0x320, kDeadline, AtNs(100));
  EXPECT_EQ(apic.NextDeadlineNs(AtNs(100)), std::nullopt);
  EXPECT_EQ(apic.ReadMmio(0x380, AtNs(100)), 0u);
}

// 11.4.7.2 masks it: a caller that re-arms by the effect finds no deadline.
TEST(TimerTest, SoftwareDisableTakesTheDeadlineAwayAndSaysSo) {
  LocalApic apic = TimerIn(kPeriodic);
  (void)apic.WriteMmio(0x380, 1000, AtNs(0));
  EXPECT_EQ(apic.WriteMmio(0x0f0, 0x0ff, AtNs(100)).kind, Kind::kRouting);
  EXPECT_EQ(apic.NextDeadlineNs(AtNs(100)), std::nullopt);
}

TEST(TimerTest, WithoutTscDeadlineBit18IsReserved) {
  LocalApic apic(ApicId(0), false, {.has_tsc_deadline = false});
  apic.Reset(false, ApicMode::kX2Apic);
  EXPECT_TRUE(apic.WriteMsr(0x832, 0x400ef, Time{}).fault);
  EXPECT_FALSE(apic.WriteMsr(0x832, 0x200ef, Time{}).fault);
}

TEST(TimerTest, SlowBusClockRoundsItsDeadlineUp) {
  LocalApic apic(ApicId(0), true, {.bus_hz = 300'000'000});
  (void)apic.WriteMmio(0x0f0, 0x1ff, Time{});
  (void)apic.WriteMmio(0x320, kPeriodic, Time{});
  (void)apic.WriteMmio(0x3e0, kTimerDivideBy1, Time{});
  (void)apic.WriteMmio(0x380, 1, AtNs(0));
  EXPECT_EQ(apic.NextDeadlineNs(AtNs(0)), 4u);  // 3.33 ns
  EXPECT_FALSE(apic.Advance(AtNs(3)));
  EXPECT_TRUE(apic.Advance(AtNs(4)));
  EXPECT_EQ(apic.NextDeadlineNs(AtNs(4)), 7u);  // 6.67 ns
}

TEST(TimerTest, LongestPossibleCountDoesNotOverflow) {
  LocalApic apic(ApicId(0), true, {.bus_hz = 24'000'000});
  (void)apic.WriteMmio(0x0f0, 0x1ff, Time{});
  (void)apic.WriteMmio(0x320, kOneShot, Time{});
  (void)apic.WriteMmio(0x3e0, 0xa, Time{});  // divided by 128
  (void)apic.WriteMmio(0x380, 0xffffffff, AtNs(0));
  // (2^32 - 1) * 128 / 24 MHz = 22906.49... s
  EXPECT_EQ(apic.NextDeadlineNs(AtNs(0)), 22'906'492'240'000u);
}

// 11.5.4.1: "reads zero and writes are ignored" is for a processor that has the MSR.
TEST(TimerTest, WithoutTscDeadlineItsMsrFaults) {
  LocalApic apic(ApicId(0), false, {.has_tsc_deadline = false});
  EXPECT_TRUE(apic.ReadTscDeadlineMsr(Time{}).fault);
  EXPECT_TRUE(apic.WriteTscDeadline(5000, Time{}).fault);
  EXPECT_FALSE(EnabledXApic().ReadTscDeadlineMsr(Time{}).fault);
}

// 11.5.4.1: a new value moves the deadline, forward or backward.
TEST(TimerTest, NewTscDeadlineReplacesTheOld) {
  LocalApic apic = TimerIn(kDeadline);
  (void)apic.WriteTscDeadline(5000, Time{});
  (void)apic.WriteTscDeadline(3000, Time{});
  EXPECT_EQ(apic.ReadTscDeadlineMsr(Time{}).value, 3000u);
  EXPECT_TRUE(apic.Advance({.ns = 0, .tsc = 3000}));
  EXPECT_FALSE(apic.Advance({.ns = 0, .tsc = 5000}));
}

// 11.5.4.1: writing the entry without a change of mode leaves an armed deadline armed.
TEST(TimerTest, NewVectorKeepsTheTscDeadline) {
  LocalApic apic = TimerIn(kDeadline);
  (void)apic.WriteTscDeadline(5000, Time{});
  (void)apic.WriteMmio(0x320, 0x400ee, Time{});
  EXPECT_TRUE(apic.Advance({.ns = 0, .tsc = 5000}));
  EXPECT_TRUE(apic.Pending(Vector(0xee)));
}

// 11.4.7.3: INIT is a change of mode too.
TEST(TimerTest, InitDisarmsTheTscDeadline) {
  LocalApic apic = TimerIn(kDeadline);
  (void)apic.WriteTscDeadline(5000, Time{});
  apic.Init();
  EXPECT_EQ(apic.ReadTscDeadline(Time{}), 0u);
  EXPECT_FALSE(apic.Advance({.ns = 0, .tsc = 9000}));
}

// 11.5.4: "a write of 0 to the initial-count register effectively stops" a one-shot as well.
TEST(TimerTest, InitialCountZeroStopsOneShot) {
  LocalApic apic = TimerIn(kOneShot);
  (void)apic.WriteMmio(0x380, 1000, AtNs(0));
  (void)apic.WriteMmio(0x380, 0, AtNs(500));
  EXPECT_FALSE(apic.Advance(AtNs(5000)));
  EXPECT_EQ(apic.ReadMmio(0x390, AtNs(500)), 0u);
}

// Table 11-2: mode 11B is reserved.
TEST(TimerTest, ReservedModeNeverExpires) {
  LocalApic apic = TimerIn(0x600ef);
  (void)apic.WriteMmio(0x380, 1000, AtNs(0));
  EXPECT_EQ(apic.NextDeadlineNs(AtNs(0)), std::nullopt);
  EXPECT_FALSE(apic.Advance(AtNs(5000)));
}

}  // namespace
}  // namespace sipi::apic
