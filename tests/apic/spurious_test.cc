// The spurious interrupt: SDM vol 3A, 11.9.
#include <gtest/gtest.h>

#include "tests/apic/apic_builders.h"

namespace sipi::apic {
namespace {

// The CPU was told of 31H; before it asks for the vector, software raises TPR over it.
LocalApic WithAnInterruptMaskedMeanwhile() {
  LocalApic apic = EnabledXApic();
  (void)apic.WriteMmio(0x0f0, 0x1ef, Time{});
  apic.Accept(Vector(0x31));
  apic.SetCr8(3);
  return apic;
}

TEST(SpuriousTest, InterruptMaskedBeforeItIsTakenGivesTheSpuriousVector) {
  LocalApic apic = WithAnInterruptMaskedMeanwhile();
  EXPECT_EQ(apic.TakeInterrupt(), Vector(0xef));
  EXPECT_EQ(apic.counters().spurious, 1u);
}

TEST(SpuriousTest, SpuriousVectorSetsNoIsrBitAndTheInterruptStaysPending) {
  LocalApic apic = WithAnInterruptMaskedMeanwhile();
  (void)apic.TakeInterrupt();
  EXPECT_FALSE(apic.InService(Vector(0xef)));
  EXPECT_TRUE(apic.Pending(Vector(0x31)));
  EXPECT_EQ(apic.WriteMmio(0x0b0, 0, Time{}).kind, WriteEffect::Kind::kNone);
  apic.SetCr8(0);
  EXPECT_EQ(apic.TakeInterrupt(), Vector(0x31));
}

TEST(SpuriousTest, DeliverableInterruptIsTakenAsItself) {
  LocalApic apic = EnabledXApic();
  apic.Accept(Vector(0x31));
  apic.Accept(Vector(0x52));
  EXPECT_EQ(apic.TakeInterrupt(), Vector(0x52));
  EXPECT_TRUE(apic.InService(Vector(0x52)));
  EXPECT_FALSE(apic.Pending(Vector(0x52)));
  EXPECT_EQ(apic.counters().spurious, 0u);
}

TEST(SpuriousTest, VectorIsTheLowByteOfSvrAndFFAfterReset) {
  LocalApic apic(ApicId(0), false);
  EXPECT_EQ(apic.spurious_vector(), Vector(0xff));
  (void)apic.WriteMmio(0x0f0, 0x3a5, Time{});
  EXPECT_EQ(apic.spurious_vector(), Vector(0xa5));
}

// 11.9, note: a source programmed with the spurious vector is an interrupt like any other.
TEST(SpuriousTest, SourceWithTheSpuriousVectorStaysInService) {
  LocalApic apic = EnabledXApic();
  apic.Accept(Vector(0xff));
  EXPECT_EQ(apic.TakeInterrupt(), Vector(0xff));
  EXPECT_TRUE(apic.InService(Vector(0xff)));
}

// Nothing above PPR at all, as after an EOI race: still an answer.
TEST(SpuriousTest, NothingPendingGivesTheSpuriousVector) {
  EXPECT_EQ(EnabledXApic().TakeInterrupt(), Vector(0xff));
}

// 11.9, focus processor checking: not supported since the Xeon, but 32-bit Linux sets it.
TEST(SpuriousTest, SvrBit9IsKeptInBothModesAndDoesNothing) {
  LocalApic xapic = EnabledXApic();
  EXPECT_EQ(xapic.WriteMmio(0x0f0, 0x3ff, Time{}).kind, WriteEffect::Kind::kNone);
  EXPECT_EQ(xapic.ReadMmio(0x0f0, Time{}), 0x3ffu);
  LocalApic x2apic = EnabledX2Apic();
  EXPECT_FALSE(x2apic.WriteMsr(0x80f, 0x3ff, Time{}).fault);
  EXPECT_EQ(x2apic.ReadMsr(0x80f, Time{}).value, 0x3ffu);
}

}  // namespace
}  // namespace sipi::apic
