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

// 11.6.2.4, as the router has it: what counts for others is the task priority.
TEST(InterruptTest, RoutingHasTheTaskPriorityWhateverIsInService) {
  LocalApic apic = EnabledXApic();
  (void)apic.WriteMmio(0x080, 0x25, Time{});
  apic.Accept(Vector(0x91));
  apic.Acknowledge(Vector(0x91));
  EXPECT_EQ(apic.Ppr(), 0x90);
  EXPECT_EQ(apic.Routing().priority, 0x25);
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

TEST(InterruptTest, TriggerModeFollowsTheLastAcceptanceEvenIfThatMerges) {
  LocalApic apic = EnabledXApic();
  apic.Accept(Vector(0x41), true);
  apic.Accept(Vector(0x42), false);
  EXPECT_FALSE(apic.Accept(Vector(0x41), false));
  EXPECT_FALSE(apic.Accept(Vector(0x42), true));
  EXPECT_EQ(apic.ReadMmio(0x1a0, Time{}), 4u);  // TMR, vectors 40H to 5FH
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

// 11.8.5: TMR keeps saying what kind of interrupt it was; only the broadcast is left out.
TEST(InterruptTest, SuppressedEoiOfALevelInterruptIsNotBroadcast) {
  LocalApic apic(ApicId(0), false, {.has_directed_eoi = true});
  (void)apic.WriteMmio(0x0f0, 0x11ff, Time{});
  EXPECT_EQ(apic.ReadMmio(0x0f0, Time{}), 0x11ffu);
  apic.Accept(Vector(0x41), true);
  apic.Acknowledge(Vector(0x41));
  const WriteEffect effect = apic.WriteMmio(0x0b0, 0, Time{});
  EXPECT_EQ(effect.kind, Kind::kEoi);
  EXPECT_EQ(effect.eoi_vector, Vector(0x41));
  EXPECT_FALSE(effect.eoi_level);
  EXPECT_TRUE(apic.LevelTriggered(Vector(0x41)));
}

TEST(InterruptTest, DirectedEoiIsOfferedByVersionBit24) {
  LocalApic apic(ApicId(0), false, {.has_directed_eoi = true});
  EXPECT_EQ(apic.ReadMmio(0x030, Time{}), 0x01060014u);
}

TEST(InterruptTest, WithDirectedEoiSvrBit12IsNotReserved) {
  LocalApic with(ApicId(0), false, {.has_directed_eoi = true});
  with.Reset(false, ApicMode::kX2Apic);
  EXPECT_FALSE(with.WriteMsr(0x80f, 0x11ff, Time{}).fault);
  EXPECT_TRUE(EnabledX2Apic().WriteMsr(0x80f, 0x11ff, Time{}).fault);
}

TEST(InterruptTest, EoiStillClearsRemoteIrrWhenItsBroadcastIsSuppressed) {
  LocalApic apic(ApicId(0), false, {.has_directed_eoi = true});
  (void)apic.WriteMmio(0x0f0, 0x11ff, Time{});
  (void)apic.WriteMmio(0x350, 0x8041, Time{});
  ASSERT_EQ(apic.RaiseLocal(LvtEntry::kLint0), LocalDelivery::kFixed);
  apic.Acknowledge(Vector(0x41));
  (void)apic.WriteMmio(0x0b0, 0, Time{});
  EXPECT_EQ(apic.ReadMmio(0x350, Time{}), 0x8041u);
}

// 11.8.3.1: the same class with TPR's sub-class kept, the lower one without.
TEST(InterruptTest, PprOfAnIdleApicIsTpr) {
  LocalApic apic = EnabledXApic();
  (void)apic.WriteMmio(0x080, 0x0a, Time{});
  EXPECT_EQ(apic.ReadMmio(0x0a0, Time{}), 0x0au);
}

// 11.8.3: class 0 holds nothing back, class 15 everything.
TEST(InterruptTest, TprClass15HoldsBackEveryVector) {
  LocalApic apic = EnabledXApic();
  apic.Accept(Vector(0xff));
  apic.SetCr8(15);
  EXPECT_EQ(apic.HighestDeliverable(), std::nullopt);
  apic.SetCr8(0);
  EXPECT_EQ(apic.HighestDeliverable(), Vector(0xff));
}

// 11.8.4, note: IRR holds one more of a vector that is in service.
TEST(InterruptTest, EoiUncoversTheSecondInterruptOfTheSameVector) {
  LocalApic apic = EnabledXApic();
  apic.Accept(Vector(0x31));
  apic.Acknowledge(Vector(0x31));
  apic.Accept(Vector(0x31));
  EXPECT_EQ(apic.HighestDeliverable(), std::nullopt);
  (void)apic.WriteMmio(0x0b0, 0, Time{});
  EXPECT_EQ(apic.HighestDeliverable(), Vector(0x31));
}

}  // namespace
}  // namespace sipi::apic
