// The LVT: LINT pins, thermal, performance and CMCI entries, masks.
#include <gtest/gtest.h>

#include <array>

#include "tests/apic/apic_builders.h"

namespace sipi::apic {
namespace {

TEST(LocalInterruptTest, MaskedEntryDeliversNothing) {
  LocalApic apic = EnabledXApic();
  (void)apic.WriteMmio(0x350, 0x10700, Time{});
  EXPECT_EQ(apic.RaiseLocal(LvtEntry::kLint0), LocalDelivery::kNone);
}

TEST(LocalInterruptTest, VirtualWireDeliversExtIntAndNmi) {
  LocalApic apic = EnabledXApic();
  (void)apic.WriteMmio(0x350, 0x700, Time{});
  (void)apic.WriteMmio(0x360, 0x400, Time{});
  EXPECT_EQ(apic.RaiseLocal(LvtEntry::kLint0), LocalDelivery::kExtInt);
  EXPECT_EQ(apic.RaiseLocal(LvtEntry::kLint1), LocalDelivery::kNmi);
}

TEST(LocalInterruptTest, FixedEntryGoesIntoIrr) {
  LocalApic apic = EnabledXApic();
  (void)apic.WriteMmio(0x330, 0xfa, Time{});
  EXPECT_EQ(apic.RaiseLocal(LvtEntry::kThermal), LocalDelivery::kFixed);
  EXPECT_TRUE(apic.Pending(Vector(0xfa)));
}

TEST(LocalInterruptTest, ThermalEntryCannotSendExtInt) {
  LocalApic apic = EnabledXApic();
  (void)apic.WriteMmio(0x330, 0x7fa, Time{});
  EXPECT_EQ(apic.RaiseLocal(LvtEntry::kThermal), LocalDelivery::kNone);
}

TEST(LocalInterruptTest, PerformanceEntryMasksItself) {
  LocalApic apic = EnabledXApic();
  (void)apic.WriteMmio(0x340, 0x400, Time{});
  EXPECT_EQ(apic.RaiseLocal(LvtEntry::kPerf), LocalDelivery::kNmi);
  EXPECT_EQ(apic.ReadMmio(0x340, Time{}), 0x10400u);
}

TEST(LocalInterruptTest, LevelTriggeredLint0WaitsForEoi) {
  LocalApic apic = EnabledXApic();
  (void)apic.WriteMmio(0x350, 0x8041, Time{});
  EXPECT_EQ(apic.RaiseLocal(LvtEntry::kLint0), LocalDelivery::kFixed);
  EXPECT_EQ(apic.ReadMmio(0x350, Time{}), 0xc041u);  // remote IRR
  apic.Acknowledge(Vector(0x41));
  EXPECT_EQ(apic.RaiseLocal(LvtEntry::kLint0), LocalDelivery::kNone);
  EXPECT_TRUE(apic.WriteMmio(0x0b0, 0, Time{}).eoi_level);
  EXPECT_EQ(apic.RaiseLocal(LvtEntry::kLint0), LocalDelivery::kFixed);
}

TEST(LocalInterruptTest, ALevelOfLint0IsAcceptedOnce) {
  LocalApic apic = EnabledXApic();
  (void)apic.WriteMmio(0x350, 0x8041, Time{});
  (void)apic.RaiseLocal(LvtEntry::kLint0);
  (void)apic.RaiseLocal(LvtEntry::kLint0);
  EXPECT_EQ(apic.counters().accepted, 1u);
}

// The EOI is that of the interrupt which set the bit, though its entry has another vector by now.
TEST(LocalInterruptTest, ANewVectorLeavesRemoteIrrToTheEoiOfTheOld) {
  LocalApic apic = EnabledXApic();
  (void)apic.WriteMmio(0x350, 0x8041, Time{});
  (void)apic.RaiseLocal(LvtEntry::kLint0);
  apic.Acknowledge(Vector(0x41));
  (void)apic.WriteMmio(0x350, 0x8092, Time{});
  apic.Accept(Vector(0x92));
  apic.Acknowledge(Vector(0x92));
  (void)apic.WriteMmio(0x0b0, 0, Time{});
  EXPECT_EQ(apic.ReadMmio(0x350, Time{}), 0xc092u) << "the EOI of 92H";
  (void)apic.WriteMmio(0x0b0, 0, Time{});
  EXPECT_EQ(apic.ReadMmio(0x350, Time{}), 0x8092u) << "the EOI of 41H";
  EXPECT_EQ(apic.RaiseLocal(LvtEntry::kLint0), LocalDelivery::kFixed);
}

TEST(LocalInterruptTest, EoiOfAnotherVectorKeepsRemoteIrr) {
  LocalApic apic = EnabledXApic();
  (void)apic.WriteMmio(0x350, 0x8041, Time{});
  (void)apic.RaiseLocal(LvtEntry::kLint0);
  apic.Accept(Vector(0x91));
  apic.Acknowledge(Vector(0x91));
  (void)apic.WriteMmio(0x0b0, 0, Time{});
  EXPECT_EQ(apic.ReadMmio(0x350, Time{}), 0xc041u);
}

TEST(LocalInterruptTest, SwitchToEdgeTriggerClearsRemoteIrr) {
  LocalApic apic = EnabledXApic();
  (void)apic.WriteMmio(0x350, 0x8041, Time{});
  (void)apic.RaiseLocal(LvtEntry::kLint0);
  (void)apic.WriteMmio(0x350, 0x0041, Time{});
  EXPECT_EQ(apic.ReadMmio(0x350, Time{}), 0x0041u);
}

TEST(LocalInterruptTest, Lint1IsEdgeTriggeredWhateverItsBitSays) {
  LocalApic apic = EnabledXApic();
  (void)apic.WriteMmio(0x360, 0x8041, Time{});
  EXPECT_EQ(apic.RaiseLocal(LvtEntry::kLint1), LocalDelivery::kFixed);
  EXPECT_FALSE(apic.LevelTriggered(Vector(0x41)));
}

TEST(LocalInterruptTest, SoftwareDisableMasksEveryEntry) {
  LocalApic apic = EnabledXApic();
  for (const uint32_t offset : {0x2f0u, 0x320u, 0x330u, 0x340u, 0x350u, 0x360u, 0x370u}) {
    (void)apic.WriteMmio(offset, 0x51, Time{});
  }
  (void)apic.WriteMmio(0x0f0, 0xff, Time{});
  for (const uint32_t offset : {0x2f0u, 0x320u, 0x330u, 0x340u, 0x350u, 0x360u, 0x370u}) {
    EXPECT_EQ(apic.ReadMmio(offset, Time{}), 0x10051u) << std::hex << offset;
  }
}

TEST(LocalInterruptTest, MasksCannotBeClearedWhileSoftwareDisabled) {
  LocalApic apic(ApicId(0), false);
  (void)apic.WriteMmio(0x350, 0x700, Time{});
  EXPECT_EQ(apic.ReadMmio(0x350, Time{}), 0x10700u);
}

TEST(LocalInterruptTest, EnablingLeavesTheMasksSet) {
  LocalApic apic = EnabledXApic();
  (void)apic.WriteMmio(0x350, 0x700, Time{});
  (void)apic.WriteMmio(0x0f0, 0xff, Time{});
  (void)apic.WriteMmio(0x0f0, 0x1ff, Time{});
  EXPECT_EQ(apic.ReadMmio(0x350, Time{}), 0x10700u);
}

TEST(LocalInterruptTest, EntriesKeepOnlyTheirWritableBits) {
  LocalApic apic = EnabledXApic();
  (void)apic.WriteMmio(0x320, 0xffffffff, Time{});
  (void)apic.WriteMmio(0x340, 0xffffffff, Time{});
  (void)apic.WriteMmio(0x350, 0xffffffff, Time{});
  (void)apic.WriteMmio(0x370, 0xffffffff, Time{});
  EXPECT_EQ(apic.ReadMmio(0x320, Time{}), 0x000700ffu);
  EXPECT_EQ(apic.ReadMmio(0x340, Time{}), 0x000107ffu);
  EXPECT_EQ(apic.ReadMmio(0x350, Time{}), 0x0001a7ffu);
  EXPECT_EQ(apic.ReadMmio(0x370, Time{}), 0x000100ffu);
}

TEST(LocalInterruptTest, WithoutCmciItsEntryDoesNotExist) {
  LocalApic apic(ApicId(0), false, {.has_cmci = false});
  apic.Reset(false, ApicMode::kX2Apic);
  EXPECT_TRUE(apic.ReadMsr(0x82f, Time{}).fault);
  EXPECT_EQ(apic.ReadMsr(0x803, Time{}).value, 0x00050014u);
}

// 11.4.3 and 6.3.1: without an APIC the pins are INTR and NMI.
TEST(LocalInterruptTest, PinsOfADisabledApicAreIntrAndNmi) {
  LocalApic apic = EnabledXApic();
  ASSERT_FALSE(apic.WriteApicBase(kApicBaseGpa).fault);
  EXPECT_EQ(apic.RaiseLocal(LvtEntry::kLint0), LocalDelivery::kExtInt);
  EXPECT_EQ(apic.RaiseLocal(LvtEntry::kLint1), LocalDelivery::kNmi);
  EXPECT_EQ(apic.RaiseLocal(LvtEntry::kThermal), LocalDelivery::kNone);
}

// 11.4.7.2: the masks hold the pins of a software-disabled one back.
TEST(LocalInterruptTest, PinsOfASoftwareDisabledApicAreMasked) {
  LocalApic apic(ApicId(0), true);
  EXPECT_EQ(apic.RaiseLocal(LvtEntry::kLint0), LocalDelivery::kNone);
  EXPECT_EQ(apic.RaiseLocal(LvtEntry::kLint1), LocalDelivery::kNone);
}

// 11.5.1: SMI and NMI from every entry with a delivery mode, INIT and ExtINT from the pins alone.
TEST(LocalInterruptTest, DeliveryModesFollowTheEntry) {
  const std::array<LvtEntry, 5> entries = {LvtEntry::kCmci, LvtEntry::kThermal, LvtEntry::kPerf,
                                           LvtEntry::kLint0, LvtEntry::kLint1};
  for (const LvtEntry entry : entries) {
    const bool pin = entry == LvtEntry::kLint0 || entry == LvtEntry::kLint1;
    const auto raise = [&](uint32_t delivery_mode) {
      LocalApic apic = EnabledXApic();
      (void)apic.WriteMmio(static_cast<uint32_t>(LvtReg(entry)), delivery_mode << 8 | 0x51, Time{});
      return apic.RaiseLocal(entry);
    };
    EXPECT_EQ(raise(0), LocalDelivery::kFixed);
    EXPECT_EQ(raise(1), LocalDelivery::kNone);  // reserved
    EXPECT_EQ(raise(2), LocalDelivery::kSmi);
    EXPECT_EQ(raise(3), LocalDelivery::kNone);  // reserved
    EXPECT_EQ(raise(4), LocalDelivery::kNmi);
    EXPECT_EQ(raise(5), pin ? LocalDelivery::kInit : LocalDelivery::kNone);
    EXPECT_EQ(raise(6), LocalDelivery::kNone);  // reserved
    EXPECT_EQ(raise(7), pin ? LocalDelivery::kExtInt : LocalDelivery::kNone);
  }
}

// 11.5.1: ExtINT, NMI and SMI bypass IRR; the vector field means nothing.
TEST(LocalInterruptTest, ExtIntAndNmiLeaveIrrAlone) {
  LocalApic apic = EnabledXApic();
  (void)apic.WriteMmio(0x350, 0x751, Time{});
  (void)apic.WriteMmio(0x360, 0x452, Time{});
  (void)apic.RaiseLocal(LvtEntry::kLint0);
  (void)apic.RaiseLocal(LvtEntry::kLint1);
  EXPECT_FALSE(apic.Pending(Vector(0x51)));
  EXPECT_FALSE(apic.Pending(Vector(0x52)));
}

// 11.5.1, delivery status: every interrupt is accepted at once, so the entry is idle again.
TEST(LocalInterruptTest, DeliveryStatusIsIdle) {
  LocalApic apic = EnabledXApic();
  (void)apic.WriteMmio(0x350, 0x1051, Time{});
  (void)apic.RaiseLocal(LvtEntry::kLint0);
  EXPECT_EQ(apic.ReadMmio(0x350, Time{}) & kLvtDeliveryStatus, 0u);
}

// 11.5.1, mask: "remains set until software clears it"; until then no second overflow interrupts.
TEST(LocalInterruptTest, PerformanceEntryStaysMaskedUntilSoftwareClearsIt) {
  LocalApic apic = EnabledXApic();
  (void)apic.WriteMmio(0x340, 0x51, Time{});
  EXPECT_EQ(apic.RaiseLocal(LvtEntry::kPerf), LocalDelivery::kFixed);
  apic.Acknowledge(Vector(0x51));
  EXPECT_EQ(apic.RaiseLocal(LvtEntry::kPerf), LocalDelivery::kNone);
  (void)apic.WriteMmio(0x340, 0x51, Time{});
  EXPECT_EQ(apic.RaiseLocal(LvtEntry::kPerf), LocalDelivery::kFixed);
}

TEST(LocalInterruptTest, ThermalAndCmciEntriesDoNotMaskThemselves) {
  LocalApic apic = EnabledXApic();
  (void)apic.WriteMmio(0x330, 0x51, Time{});
  (void)apic.WriteMmio(0x2f0, 0x52, Time{});
  (void)apic.RaiseLocal(LvtEntry::kThermal);
  (void)apic.RaiseLocal(LvtEntry::kCmci);
  EXPECT_EQ(apic.ReadMmio(0x330, Time{}), 0x51u);
  EXPECT_EQ(apic.ReadMmio(0x2f0, Time{}), 0x52u);
}

}  // namespace
}  // namespace sipi::apic
