// Fixed interrupts: acceptance, priorities, EOI.
#include <gtest/gtest.h>

#include "tests/apic/apic_builders.h"

namespace sipi::apic {
namespace {

using Kind = WriteEffect::Kind;

TEST(InterruptTest, HighestVectorIsDeliveredFirst) {
  LocalApic apic = EnabledXApic();
  apic.Accept(Vector(0x31));
  apic.Accept(Vector(0xe0));
  apic.Accept(Vector(0x81));
  EXPECT_EQ(apic.HighestDeliverable(), Vector(0xe0));
}

TEST(InterruptTest, AcknowledgeMovesFromIrrToIsr) {
  LocalApic apic = EnabledXApic();
  apic.Accept(Vector(0x31));
  apic.Acknowledge(Vector(0x31));
  EXPECT_FALSE(apic.Pending(Vector(0x31)));
  EXPECT_TRUE(apic.InService(Vector(0x31)));
}

TEST(InterruptTest, SameClassWaitsForEoi) {
  LocalApic apic = EnabledXApic();
  apic.Accept(Vector(0x31));
  apic.Acknowledge(Vector(0x31));
  apic.Accept(Vector(0x3f));
  EXPECT_EQ(apic.HighestDeliverable(), std::nullopt);
  (void)apic.WriteMmio(0x0b0, 0, Time{});
  EXPECT_EQ(apic.HighestDeliverable(), Vector(0x3f));
}

TEST(InterruptTest, HigherClassNests) {
  LocalApic apic = EnabledXApic();
  apic.Accept(Vector(0x31));
  apic.Acknowledge(Vector(0x31));
  apic.Accept(Vector(0x40));
  EXPECT_EQ(apic.HighestDeliverable(), Vector(0x40));
}

TEST(InterruptTest, SameVectorCanBePendingWhileInService) {
  LocalApic apic = EnabledXApic();
  apic.Accept(Vector(0x31));
  apic.Acknowledge(Vector(0x31));
  EXPECT_TRUE(apic.Accept(Vector(0x31)));
  EXPECT_FALSE(apic.Accept(Vector(0x31)));
  EXPECT_EQ(apic.counters().merged, 1u);
}

TEST(InterruptTest, TprHoldsBackItsClassAndBelow) {
  LocalApic apic = EnabledXApic();
  EXPECT_EQ(apic.WriteMmio(0x080, 0x30, Time{}).kind, Kind::kPriority);
  apic.Accept(Vector(0x3f));
  EXPECT_EQ(apic.HighestDeliverable(), std::nullopt);
  apic.Accept(Vector(0x40));
  EXPECT_EQ(apic.HighestDeliverable(), Vector(0x40));
}

TEST(InterruptTest, PprIsTprWhenItsClassIsNotLower) {
  LocalApic apic = EnabledXApic();
  apic.Accept(Vector(0x52));
  apic.Acknowledge(Vector(0x52));
  (void)apic.WriteMmio(0x080, 0x57, Time{});
  EXPECT_EQ(apic.ReadMmio(0x0a0, Time{}), 0x57u);
}

TEST(InterruptTest, PprIsTheClassInServiceWhenHigher) {
  LocalApic apic = EnabledXApic();
  apic.Accept(Vector(0x62));
  apic.Acknowledge(Vector(0x62));
  (void)apic.WriteMmio(0x080, 0x57, Time{});
  EXPECT_EQ(apic.ReadMmio(0x0a0, Time{}), 0x60u);
}

TEST(InterruptTest, Cr8IsTheClassOfTpr) {
  LocalApic apic = EnabledXApic();
  (void)apic.WriteMmio(0x080, 0x57, Time{});
  EXPECT_EQ(apic.Cr8(), 5);
  apic.SetCr8(9);
  EXPECT_EQ(apic.ReadMmio(0x080, Time{}), 0x90u);
}

TEST(InterruptTest, EoiEndsTheHighestInService) {
  LocalApic apic = EnabledXApic();
  apic.Accept(Vector(0x31));
  apic.Acknowledge(Vector(0x31));
  apic.Accept(Vector(0x40));
  apic.Acknowledge(Vector(0x40));
  const WriteEffect effect = apic.WriteMmio(0x0b0, 0, Time{});
  EXPECT_EQ(effect.kind, Kind::kEoi);
  EXPECT_EQ(effect.eoi_vector, Vector(0x40));
  EXPECT_FALSE(effect.eoi_level);
  EXPECT_TRUE(apic.InService(Vector(0x31)));
}

TEST(InterruptTest, EoiOfALevelInterruptIsBroadcast) {
  LocalApic apic = EnabledXApic();
  apic.Accept(Vector(0x41), true);
  apic.Acknowledge(Vector(0x41));
  EXPECT_TRUE(apic.WriteMmio(0x0b0, 0, Time{}).eoi_level);
}

TEST(InterruptTest, TriggerModeFollowsTheLastAcceptance) {
  LocalApic apic = EnabledXApic();
  apic.Accept(Vector(0x41), true);
  EXPECT_EQ(apic.ReadMmio(0x1a0, Time{}), 2u);  // TMR, vectors 40H to 5FH
  apic.Acknowledge(Vector(0x41));
  apic.Accept(Vector(0x41), false);
  EXPECT_EQ(apic.ReadMmio(0x1a0, Time{}), 0u);
}

TEST(InterruptTest, EoiWithNothingInServiceDoesNothing) {
  LocalApic apic = EnabledXApic();
  EXPECT_EQ(apic.WriteMmio(0x0b0, 0, Time{}).kind, Kind::kNone);
}

TEST(InterruptTest, SoftwareDisabledApicRefusesNewInterrupts) {
  LocalApic apic(ApicId(0), false);
  EXPECT_FALSE(apic.Accept(Vector(0x31)));
  EXPECT_EQ(apic.counters().refused, 1u);
}

TEST(InterruptTest, SoftwareDisableHoldsWhatIsPending) {
  LocalApic apic = EnabledXApic();
  apic.Accept(Vector(0x31));
  EXPECT_EQ(apic.WriteMmio(0x0f0, 0xff, Time{}).kind, Kind::kRouting);
  EXPECT_EQ(apic.HighestDeliverable(), Vector(0x31));
}

TEST(InterruptTest, RegistersShowEachVectorInItsWord) {
  LocalApic apic = EnabledXApic();
  apic.Accept(Vector(0x10));
  apic.Accept(Vector(0xff));
  EXPECT_EQ(apic.ReadMmio(0x200, Time{}), 0x00010000u);
  EXPECT_EQ(apic.ReadMmio(0x270, Time{}), 0x80000000u);
  apic.Acknowledge(Vector(0xff));
  EXPECT_EQ(apic.ReadMmio(0x170, Time{}), 0x80000000u);
}

}  // namespace
}  // namespace sipi::apic
