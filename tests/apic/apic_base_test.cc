// IA32_APIC_BASE: modes, legal and illegal transitions, reserved bits (case A12).
#include <gtest/gtest.h>

#include "tests/apic/apic_builders.h"

namespace sipi::apic {
namespace {

constexpr uint64_t kOff = kApicBaseGpa;
constexpr uint64_t kX1 = kApicBaseGpa | kApicBaseEnable;
constexpr uint64_t kX2 = kX1 | kApicBaseX2Apic;
constexpr uint64_t kInvalid = kApicBaseGpa | kApicBaseX2Apic;

// Brings a fresh APIC into a mode by legal steps.
LocalApic ApicIn(ApicMode mode) {
  LocalApic apic(ApicId(5), false);
  apic.Reset(false, mode);
  return apic;
}

TEST(ApicBaseTest, BspFlagIsOnTheBspAlone) {
  EXPECT_EQ(LocalApic(ApicId(0), true).ReadApicBase(), 0xfee00900u);
  EXPECT_EQ(LocalApic(ApicId(1), false).ReadApicBase(), 0xfee00800u);
}

TEST(ApicBaseTest, XApicToX2ApicIsLegal) {
  LocalApic apic = ApicIn(ApicMode::kXApic);
  const WriteEffect effect = apic.WriteApicBase(kX2);
  EXPECT_FALSE(effect.fault);
  EXPECT_EQ(effect.kind, WriteEffect::Kind::kModeChange);
  EXPECT_EQ(apic.mode(), ApicMode::kX2Apic);
}

TEST(ApicBaseTest, X2ApicToXApicFaultsAndChangesNothing) {
  LocalApic apic = ApicIn(ApicMode::kX2Apic);
  EXPECT_TRUE(apic.WriteApicBase(kX1).fault);
  EXPECT_EQ(apic.ReadApicBase(), kX2);
}

TEST(ApicBaseTest, DisabledToX2ApicFaults) {
  LocalApic apic = ApicIn(ApicMode::kDisabled);
  EXPECT_TRUE(apic.WriteApicBase(kX2).fault);
  EXPECT_EQ(apic.mode(), ApicMode::kDisabled);
}

TEST(ApicBaseTest, DisabledToXApicIsLegal) {
  LocalApic apic = ApicIn(ApicMode::kDisabled);
  EXPECT_FALSE(apic.WriteApicBase(kX1).fault);
  EXPECT_EQ(apic.mode(), ApicMode::kXApic);
}

TEST(ApicBaseTest, BothModesToDisabledIsLegal) {
  LocalApic xapic = ApicIn(ApicMode::kXApic);
  EXPECT_FALSE(xapic.WriteApicBase(kOff).fault);
  LocalApic x2apic = ApicIn(ApicMode::kX2Apic);
  EXPECT_FALSE(x2apic.WriteApicBase(kOff).fault);
  EXPECT_EQ(x2apic.mode(), ApicMode::kDisabled);
}

TEST(ApicBaseTest, InvalidStateFaultsFromEveryMode) {
  EXPECT_TRUE(ApicIn(ApicMode::kDisabled).WriteApicBase(kInvalid).fault);
  EXPECT_TRUE(ApicIn(ApicMode::kXApic).WriteApicBase(kInvalid).fault);
  EXPECT_TRUE(ApicIn(ApicMode::kX2Apic).WriteApicBase(kInvalid).fault);
}

TEST(ApicBaseTest, EachReservedBitFaults) {
  for (const int bit : {0, 1, 2, 3, 4, 5, 6, 7, 9, 46, 51, 63}) {
    LocalApic apic(ApicId(0), false, {.phys_addr_bits = 46});
    EXPECT_TRUE(apic.WriteApicBase(kX1 | uint64_t{1} << bit).fault) << "bit " << bit;
  }
}

TEST(ApicBaseTest, HighestPhysicalAddressBitIsLegal) {
  LocalApic apic(ApicId(0), false, {.phys_addr_bits = 46});
  EXPECT_FALSE(apic.WriteApicBase(kX1 | uint64_t{1} << 45).fault);
}

TEST(ApicBaseTest, ExtdIsReservedWithoutX2Apic) {
  LocalApic apic(ApicId(0), false, {.has_x2apic = false});
  EXPECT_TRUE(apic.WriteApicBase(kX2).fault);
}

TEST(ApicBaseTest, RelocationIsAModeChangeForTheCaller) {
  LocalApic apic = ApicIn(ApicMode::kXApic);
  EXPECT_EQ(apic.WriteApicBase(0xfed40800).kind, WriteEffect::Kind::kModeChange);
  EXPECT_EQ(ApicBaseAddress(apic.ReadApicBase()), 0xfed40000u);
}

TEST(ApicBaseTest, WritingTheSameValueHasNoEffect) {
  LocalApic apic = ApicIn(ApicMode::kXApic);
  EXPECT_EQ(apic.WriteApicBase(kX1).kind, WriteEffect::Kind::kNone);
}

TEST(ApicBaseTest, AdoptedBaseGoesByWayOfDisabled) {
  LocalApic apic = EnabledX2Apic();
  apic.SetCr8(5);
  const WriteEffect effect = apic.AdoptApicBase(kX1);
  EXPECT_EQ(effect.kind, WriteEffect::Kind::kModeChange);
  EXPECT_EQ(apic.ReadApicBase(), kX1);
  EXPECT_EQ(apic.Cr8(), 0);
}

TEST(ApicBaseTest, AdoptedBaseCanGoFromDisabledToX2Apic) {
  LocalApic apic = ApicIn(ApicMode::kDisabled);
  EXPECT_EQ(apic.AdoptApicBase(kX2).kind, WriteEffect::Kind::kModeChange);
  EXPECT_EQ(apic.mode(), ApicMode::kX2Apic);
}

TEST(ApicBaseTest, AdoptingALegalStepKeepsTheRegisters) {
  LocalApic apic = EnabledXApic();
  (void)apic.AdoptApicBase(kX2);
  EXPECT_TRUE(apic.software_enabled());
}

TEST(ApicBaseTest, DisablingLosesTheRegisters) {
  LocalApic apic = EnabledXApic();
  apic.SetCr8(5);
  ASSERT_FALSE(apic.WriteApicBase(kOff).fault);
  ASSERT_FALSE(apic.WriteApicBase(kX1).fault);
  EXPECT_EQ(apic.ReadMmio(0x0f0, Time{}), 0xffu);
  EXPECT_EQ(apic.ReadMmio(0x080, Time{}), 0u);
}

TEST(ApicBaseTest, SwitchToX2ApicKeepsWhatBothModesHave) {
  LocalApic apic = EnabledXApic(ApicId(0x21));
  apic.Accept(Vector(0x55));
  (void)apic.WriteMmio(0x080, 0x40, Time{});
  ASSERT_FALSE(apic.WriteApicBase(kX2).fault);
  EXPECT_EQ(apic.ReadMsr(0x802, Time{}).value, 0x21u);
  EXPECT_EQ(apic.ReadMsr(0x808, Time{}).value, 0x40u);
  EXPECT_TRUE(apic.Pending(Vector(0x55)));
}

TEST(ApicBaseTest, SwitchToX2ApicForgetsTheNarrowDestination) {
  LocalApic apic = EnabledXApic();
  (void)apic.WriteMmio(0x310, 0x07000000, Time{});
  (void)apic.WriteMmio(0x300, 0x00004031, Time{});
  ASSERT_FALSE(apic.WriteApicBase(kX2).fault);
  EXPECT_EQ(apic.ReadMsr(0x830, Time{}).value, 0x4031u);
}

TEST(ApicBaseTest, DisabledApicAcceptsAndDeliversNothing) {
  LocalApic apic = ApicIn(ApicMode::kDisabled);
  EXPECT_FALSE(apic.Accept(Vector(0x55)));
  EXPECT_EQ(apic.HighestDeliverable(), std::nullopt);
}

}  // namespace
}  // namespace sipi::apic
