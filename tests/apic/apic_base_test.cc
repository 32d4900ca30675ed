// IA32_APIC_BASE: modes, legal and illegal transitions, reserved bits (case A12).
#include <gtest/gtest.h>

#include <ios>
#include <utility>

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

// Whoever was the BSP before: a power-up decides anew, in each mode. INIT does not (11.4.7.3).
TEST(ApicBaseTest, BspFlagIsOnTheBspAlone) {
  EXPECT_EQ(LocalApic(ApicId(0), true).ReadApicBase(), 0xfee00900u);
  EXPECT_EQ(LocalApic(ApicId(1), false).ReadApicBase(), 0xfee00800u);
  const std::pair<ApicMode, uint64_t> bases[] = {
      {ApicMode::kDisabled, kOff}, {ApicMode::kXApic, kX1}, {ApicMode::kX2Apic, kX2}};
  for (const auto& [mode, base] : bases) {
    for (const bool before : {false, true}) {
      for (const bool bsp : {false, true}) {
        LocalApic apic(ApicId(bsp ? 1 : 0), before);  // the ID does not decide
        EXPECT_EQ(apic.bsp(), before);
        apic.Reset(bsp, mode);
        EXPECT_EQ(apic.bsp(), bsp);
        EXPECT_EQ(apic.ReadApicBase(), base | (bsp ? 0x100u : 0u));
        apic.Init();
        EXPECT_EQ(apic.ReadApicBase(), base | (bsp ? 0x100u : 0u));
      }
    }
  }
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

// Each register that software can write, set to what is not its reset value (11.4.7.1), and both
// kinds of interrupt. 2F0H to 370H without the ICR are the LVT, masked after reset.
TEST(ApicBaseTest, DisablingLosesTheRegisters) {
  struct Written {
    uint32_t offset;
    uint32_t value;
    uint32_t reset;
  };
  constexpr Written kWritten[] = {
      {0x0f0, 0x1fe, 0xff},         {0x080, 0x5a, 0},
      {0x0d0, 0x01000000, 0},       {0x0e0, 0x0fffffff, 0xffffffff},
      {0x300, 0x00000831, 0},       {0x310, 0x07000000, 0},
      {0x2f0, 0x000000f2, 0x10000}, {0x320, 0x00020041, 0x10000},
      {0x330, 0x00000043, 0x10000}, {0x340, 0x00000044, 0x10000},
      {0x350, 0x00000045, 0x10000}, {0x360, 0x00000046, 0x10000},
      {0x370, 0x00000047, 0x10000}, {0x380, 0x12345, 0},
      {0x3e0, 0x0000000b, 0},
  };
  LocalApic apic = EnabledXApic();
  ASSERT_TRUE(apic.Accept(Vector(0x99), /*level=*/true));
  apic.Acknowledge(Vector(0x99));
  ASSERT_TRUE(apic.Accept(Vector(0x77)));
  (void)apic.Accept(Vector(5));  // an illegal vector: one error latched in ESR, one to come
  (void)apic.WriteMmio(0x280, 0, Time{});
  ASSERT_NE(apic.ReadMmio(0x280, Time{}), 0u);
  (void)apic.Accept(Vector(5));
  for (const Written& reg : kWritten) {
    (void)apic.WriteMmio(reg.offset, reg.value, Time{});
    const uint32_t now = apic.ReadMmio(reg.offset, Time{});
    ASSERT_NE(now, reg.reset) << std::hex << reg.offset << ": nothing to lose";
  }
  ASSERT_FALSE(apic.WriteApicBase(kOff).fault);
  ASSERT_FALSE(apic.WriteApicBase(kX1).fault);
  for (const Written& reg : kWritten) {
    EXPECT_EQ(apic.ReadMmio(reg.offset, Time{}), reg.reset) << std::hex << reg.offset;
  }
  EXPECT_EQ(apic.ReadMmio(0x280, Time{}), 0u);
  (void)apic.WriteMmio(0x280, 0, Time{});
  EXPECT_EQ(apic.ReadMmio(0x280, Time{}), 0u);
  EXPECT_FALSE(apic.Pending(Vector(0x77)));
  EXPECT_FALSE(apic.InService(Vector(0x99)));
  EXPECT_FALSE(apic.LevelTriggered(Vector(0x99)));
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
