// The APIC's state after power-up and after INIT (case A8).
#include <gtest/gtest.h>

#include "tests/apic/apic_builders.h"

namespace sipi::apic {
namespace {

// Case A8's input: TPR, SVR, all LVTs, ESR, a running periodic timer, pending and in-service bits.
void Disturb(LocalApic& apic, Time now) {
  (void)apic.WriteMmio(0x0f0, 0x1ff, now);
  (void)apic.WriteMmio(0x080, 0x70, now);
  (void)apic.WriteMmio(0x0d0, 0x04000000, now);
  (void)apic.WriteMmio(0x0e0, 0x0fffffff, now);
  for (const uint32_t offset : {0x2f0u, 0x330u, 0x340u, 0x350u, 0x360u, 0x370u}) {
    (void)apic.WriteMmio(offset, 0x51, now);
  }
  (void)apic.WriteMmio(0x320, 0x200ef, now);  // periodic, vector EFH
  (void)apic.WriteMmio(0x3e0, 0xb, now);
  (void)apic.WriteMmio(0x380, 100'000, now);
  (void)apic.WriteMmio(0x310, 0x05000000, now);
  (void)apic.WriteMmio(0x300, 0x00004031, now);
  (void)apic.ReadMmio(0x040, now);  // an illegal register: ESR
  (void)apic.WriteMmio(0x280, 0, now);
  apic.Accept(Vector(0x91), true);
  apic.Acknowledge(Vector(0x91));
  apic.Accept(Vector(0x80));
}

TEST(ResetTest, InitGivesTheRegistersOfTheSdm) {
  LocalApic apic(ApicId(9), false);
  Disturb(apic, AtNs(0));
  apic.Init();
  const Time now = AtNs(10'000'000);
  for (const uint32_t offset : {0x2f0u, 0x320u, 0x330u, 0x340u, 0x350u, 0x360u, 0x370u}) {
    EXPECT_EQ(apic.ReadMmio(offset, now), 0x00010000u) << std::hex << offset;
  }
  EXPECT_EQ(apic.ReadMmio(0x0f0, now), 0xffu);
  EXPECT_EQ(apic.ReadMmio(0x0e0, now), 0xffffffffu);
  EXPECT_EQ(apic.ReadMmio(0x0d0, now), 0u);
  for (const uint32_t zero : {0x080u, 0x0a0u, 0x280u, 0x300u, 0x310u, 0x380u, 0x390u, 0x3e0u}) {
    EXPECT_EQ(apic.ReadMmio(zero, now), 0u) << std::hex << zero;
  }
  for (uint32_t bitmap = 0x100; bitmap < 0x280; bitmap += 16) {
    EXPECT_EQ(apic.ReadMmio(bitmap, now), 0u) << std::hex << bitmap;
  }
}

TEST(ResetTest, InitLeavesNoErrorForTheNextEsrWrite) {
  LocalApic apic = EnabledXApic();
  (void)apic.ReadMmio(0x040, Time{});
  apic.Init();
  (void)apic.WriteMmio(0x280, 0, Time{});
  EXPECT_EQ(apic.ReadMmio(0x280, Time{}), 0u);
}

TEST(ResetTest, NoInterruptComesAfterInit) {
  LocalApic apic(ApicId(9), false);
  Disturb(apic, AtNs(0));
  apic.Init();
  (void)apic.WriteMmio(0x0f0, 0x1ff, AtNs(10'000'000));
  EXPECT_FALSE(apic.Advance(AtNs(20'000'000)));
  EXPECT_EQ(apic.NextDeadlineNs(AtNs(20'000'000)), std::nullopt);
  EXPECT_EQ(apic.HighestDeliverable(), std::nullopt);
}

TEST(ResetTest, InitKeepsIdVersionAndBase) {
  LocalApic apic(ApicId(9), true);
  ASSERT_FALSE(apic.WriteApicBase(0xfed40900).fault);
  const uint32_t version = apic.ReadMmio(0x030, Time{});
  apic.Init();
  EXPECT_EQ(apic.ReadMmio(0x020, Time{}), 0x09000000u);
  EXPECT_EQ(apic.ReadMmio(0x030, Time{}), version);
  EXPECT_EQ(apic.ReadApicBase(), 0xfed40900u);
}

TEST(ResetTest, InitKeepsX2ApicModeAndItsLogicalId) {
  LocalApic apic = EnabledX2Apic(ApicId(0x12c));
  apic.Init();
  EXPECT_EQ(apic.mode(), ApicMode::kX2Apic);
  EXPECT_EQ(apic.ReadMsr(0x802, Time{}).value, 0x12cu);
  EXPECT_EQ(apic.ReadMsr(0x80d, Time{}).value, 0x00121000u);
}

TEST(ResetTest, InitKeepsADisabledApicDisabled) {
  LocalApic apic(ApicId(1), false);
  ASSERT_FALSE(apic.WriteApicBase(kApicBaseGpa).fault);
  apic.Init();
  EXPECT_EQ(apic.mode(), ApicMode::kDisabled);
}

TEST(ResetTest, PowerUpIsXApicAndSoftwareDisabled) {
  LocalApic apic(ApicId(1), false);
  EXPECT_EQ(apic.mode(), ApicMode::kXApic);
  EXPECT_FALSE(apic.software_enabled());
}

TEST(ResetTest, ResetBringsTheBaseBack) {
  LocalApic apic = EnabledX2Apic();
  apic.Reset(true);
  EXPECT_EQ(apic.ReadApicBase(), 0xfee00900u);
}

TEST(ResetTest, VersionReportsSevenLvtEntriesAndNoDirectedEoi) {
  LocalApic apic(ApicId(0), true);
  EXPECT_EQ(apic.ReadMmio(0x030, Time{}), 0x00060014u);
}

TEST(ResetTest, RoutingFollowsInit) {
  LocalApic apic = EnabledXApic();
  (void)apic.WriteMmio(0x0d0, 0x04000000, Time{});
  apic.Init();
  const RoutingState state = apic.Routing();
  EXPECT_FALSE(state.software_enabled);
  EXPECT_EQ(state.ldr, 0u);
  EXPECT_EQ(state.dfr_model, 0xf);
}

}  // namespace
}  // namespace sipi::apic
