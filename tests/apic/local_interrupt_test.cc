// The LVT: LINT pins, thermal, performance and CMCI entries, masks.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace sipi::apic
