// The ICR and what a write to it makes the caller do (cases A4, A11).
#include "apic/regs/icr.h"

#include <gtest/gtest.h>

#include "tests/apic/apic_builders.h"

namespace sipi::apic {
namespace {

using Kind = WriteEffect::Kind;

TEST(IcrTest, LowHalfSurvivesDecodingAndEncoding) {
  // Every defined bit at once: vector, mode, logical, assert, level, shorthand.
  EXPECT_EQ(Icr::FromLow(0x000ccfff, 7).Low(), 0x000ccfffu);
  EXPECT_EQ(Icr::FromX2Apic(0x12345678'000c4d21).X2Apic(), 0x12345678'000c4d21u);
}

TEST(IcrTest, LinuxInitAssertDecodes) {
  const Icr icr = Icr::FromXApic(0x05000000, 0x0000c500);
  EXPECT_EQ(icr.mode, DeliveryMode::kInit);
  EXPECT_TRUE(icr.level_triggered);
  EXPECT_TRUE(icr.assert_level);
  EXPECT_EQ(icr.dest, 5u);
}

TEST(IcrTest, X2ApicReadsBackAll64Bits) {
  LocalApic apic = EnabledX2Apic();
  const WriteEffect effect = apic.WriteMsr(0x830, 0x0000012c'000046fe, Time{});
  EXPECT_EQ(effect.kind, Kind::kIpi);
  EXPECT_EQ(effect.icr.dest, 0x12cu);
  EXPECT_EQ(effect.icr.mode, DeliveryMode::kStartUp);
  EXPECT_EQ(apic.ReadMsr(0x830, Time{}).value, 0x0000012c'000046feu);
}

TEST(IcrTest, X2ApicTakesEveryDestinationBit) {
  LocalApic apic = EnabledX2Apic();
  EXPECT_FALSE(apic.WriteMsr(0x830, 0xffffffff'00004030, Time{}).fault);
  EXPECT_EQ(apic.ReadMsr(0x830, Time{}).value, 0xffffffff'00004030u);
}

TEST(IcrTest, X2ApicReservedBitsFaultOneByOne) {
  for (int bit = 0; bit < 32; ++bit) {
    const bool reserved = bit == 13 || bit == 16 || bit == 17 || bit >= 20;
    LocalApic apic = EnabledX2Apic();
    EXPECT_EQ(apic.WriteMsr(0x830, uint64_t{1} << bit | 0x30, Time{}).fault, reserved)
        << "bit " << bit;
  }
}

TEST(IcrTest, X2ApicDeliveryStatusIsIgnoredAndReadsZero) {
  LocalApic apic = EnabledX2Apic();
  EXPECT_FALSE(apic.WriteMsr(0x830, 0x1030, Time{}).fault);
  EXPECT_EQ(apic.ReadMsr(0x830, Time{}).value, 0x30u);
}

TEST(IcrTest, X2ApicIcrHighFaults) {
  LocalApic apic = EnabledX2Apic();
  EXPECT_TRUE(apic.WriteMsr(0x831, 0, Time{}).fault);
  EXPECT_TRUE(apic.ReadMsr(0x831, Time{}).fault);
}

TEST(IcrTest, XApicSendsOnTheLowHalfToTheDestinationInTheHighHalf) {
  LocalApic apic = EnabledXApic();
  EXPECT_EQ(apic.WriteMmio(0x310, 0x07000000, Time{}).kind, Kind::kNone);
  const WriteEffect effect = apic.WriteMmio(0x300, 0x00004608, Time{});
  EXPECT_EQ(effect.kind, Kind::kIpi);
  EXPECT_EQ(effect.icr.dest, 7u);
  EXPECT_EQ(effect.icr.vector, Vector(8));
}

TEST(IcrTest, XApicIsIdleAtOnce) {
  LocalApic apic = EnabledXApic();
  (void)apic.WriteMmio(0x300, 0x00004608, Time{});
  EXPECT_EQ(apic.ReadMmio(0x300, Time{}) & kIcrDeliveryStatus, 0u);
}

TEST(IcrTest, XApicKeepsOnlyDefinedBits) {
  LocalApic apic = EnabledXApic();
  (void)apic.WriteMmio(0x310, 0xffffffff, Time{});
  (void)apic.WriteMmio(0x300, 0xffffffff, Time{});
  EXPECT_EQ(apic.ReadMmio(0x310, Time{}), 0xff000000u);
  EXPECT_EQ(apic.ReadMmio(0x300, Time{}), 0x000ccfffu);
}

TEST(IcrTest, FixedToSelfIsInIrrWithNothingToSend) {
  LocalApic apic = EnabledXApic();
  EXPECT_EQ(apic.WriteMmio(0x300, 0x000440f1, Time{}).kind, Kind::kSelfIpi);
  EXPECT_TRUE(apic.Pending(Vector(0xf1)));
}

TEST(IcrTest, SelfIpiRegisterLeavesTheIcrAlone) {
  LocalApic apic = EnabledX2Apic();
  (void)apic.WriteMsr(0x830, 0x0000012c'00004030, Time{});
  EXPECT_EQ(apic.WriteMsr(0x83f, 0xf1, Time{}).kind, Kind::kSelfIpi);
  EXPECT_TRUE(apic.Pending(Vector(0xf1)));
  EXPECT_EQ(apic.ReadMsr(0x830, Time{}).value, 0x0000012c'00004030u);
}

TEST(IcrTest, SoftwareDisabledApicStillSends) {
  LocalApic apic(ApicId(0), true);
  EXPECT_EQ(apic.WriteMmio(0x300, 0x000c4500, Time{}).kind, Kind::kIpi);
}

TEST(IcrTest, SentMessagesAreCountedByDeliveryMode) {
  LocalApic apic = EnabledX2Apic();
  (void)apic.WriteMsr(0x830, 0x000c4500, Time{});
  (void)apic.WriteMsr(0x830, 0x000c4608, Time{});
  (void)apic.WriteMsr(0x830, 0x000c4608, Time{});
  EXPECT_EQ(apic.counters().Sent(DeliveryMode::kInit), 1u);
  EXPECT_EQ(apic.counters().Sent(DeliveryMode::kStartUp), 2u);
  EXPECT_EQ(apic.counters().broadcast_ipi, 3u);
}

// Table 11-3, note 2: the local APIC issues a level-triggered IPI as an edge-triggered one.
TEST(IcrTest, LevelTriggeredSelfIpiArrivesAsEdge) {
  LocalApic apic = EnabledXApic();
  EXPECT_EQ(apic.WriteMmio(0x300, 0x0004c0f1, Time{}).kind, Kind::kSelfIpi);
  EXPECT_TRUE(apic.Pending(Vector(0xf1)));
  EXPECT_FALSE(apic.LevelTriggered(Vector(0xf1)));
}

// 11.6.1: the high half alone sends nothing, and the low half can be written again and again.
TEST(IcrTest, DestinationStaysForTheNextCommand) {
  LocalApic apic = EnabledXApic();
  (void)apic.WriteMmio(0x310, 0x07000000, Time{});
  EXPECT_EQ(apic.WriteMmio(0x300, 0x00004500, Time{}).icr.dest, 7u);
  EXPECT_EQ(apic.WriteMmio(0x300, 0x00004608, Time{}).icr.dest, 7u);
}

// 11.4.7.2: what an APIC refuses while software-disabled includes its own.
TEST(IcrTest, SoftwareDisabledApicRefusesItsSelfIpi) {
  LocalApic apic(ApicId(0), true);
  (void)apic.WriteMmio(0x300, 0x000440f1, Time{});
  EXPECT_FALSE(apic.Pending(Vector(0xf1)));
}

// 11.12.9: the destination is all 32 bits of the high half, whatever it holds.
TEST(IcrTest, X2ApicDestinationIsThirtyTwoBits) {
  LocalApic apic = EnabledX2Apic();
  EXPECT_EQ(apic.WriteMsr(0x830, 0xfedcba98'00004031, Time{}).icr.dest, 0xfedcba98u);
}

}  // namespace
}  // namespace sipi::apic
