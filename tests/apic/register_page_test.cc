// The register page: layout, saving and restoring.
#include <gtest/gtest.h>

#include "tests/apic/apic_builders.h"

namespace sipi::apic {
namespace {

TEST(RegisterPageTest, ShowsEachRegisterAtItsOffset) {
  LocalApic apic = EnabledXApic(ApicId(3));
  (void)apic.WriteMmio(0x080, 0x40, Time{});
  (void)apic.WriteMmio(0x310, 0x05000000, Time{});
  apic.Accept(Vector(0x91), true);
  const RegisterPage page = apic.ToPage(Time{});
  EXPECT_EQ(page.Get(Reg::kId), 0x03000000u);
  EXPECT_EQ(page.Get(Reg::kTpr), 0x40u);
  EXPECT_EQ(page.Get(Reg::kPpr), 0x40u);
  EXPECT_EQ(page.Get(Reg::kSvr), 0x1ffu);
  EXPECT_EQ(page.Get(Reg::kIcrHigh), 0x05000000u);
  EXPECT_EQ(page.Get(0x240), 0x00020000u);  // IRR, vectors 80H to 9FH
  EXPECT_EQ(page.Get(0x1c0), 0x00020000u);  // TMR
}

TEST(RegisterPageTest, X2ApicPageHasTheWholeIdAndASplitIcr) {
  LocalApic apic = EnabledX2Apic(ApicId(0x12c));
  (void)apic.WriteMsr(0x830, 0x00000abc'00004031, Time{});
  const RegisterPage page = apic.ToPage(Time{});
  EXPECT_EQ(page.Get(Reg::kId), 0x12cu);
  EXPECT_EQ(page.Get(Reg::kLdr), 0x00121000u);
  EXPECT_EQ(page.Get(Reg::kIcrLow), 0x4031u);
  EXPECT_EQ(page.Get(Reg::kIcrHigh), 0xabcu);
}

TEST(RegisterPageTest, RestoredApicHasTheSamePage) {
  LocalApic saved = EnabledXApic();
  (void)saved.WriteMmio(0x320, 0x200ef, AtNs(0));
  (void)saved.WriteMmio(0x350, 0x8041, AtNs(0));
  (void)saved.WriteMmio(0x3e0, 0xb, AtNs(0));
  (void)saved.WriteMmio(0x380, 1000, AtNs(0));
  (void)saved.RaiseLocal(LvtEntry::kLint0);
  const RegisterPage page = saved.ToPage(AtNs(300));
  LocalApic restored(ApicId(3), false);
  restored.FromPage(page, AtNs(5000));
  EXPECT_EQ(restored.ToPage(AtNs(5000)), page);
}

TEST(RegisterPageTest, RestoredTimerGoesOnFromItsCount) {
  LocalApic saved = EnabledXApic();
  (void)saved.WriteMmio(0x320, 0x200ef, AtNs(0));
  (void)saved.WriteMmio(0x3e0, 0xb, AtNs(0));
  (void)saved.WriteMmio(0x380, 1000, AtNs(0));
  LocalApic restored(ApicId(3), false);
  restored.FromPage(saved.ToPage(AtNs(300)), AtNs(5000));
  EXPECT_EQ(restored.NextDeadlineNs(AtNs(5000)), 5700u);
  restored.Advance(AtNs(5700));
  EXPECT_EQ(restored.NextDeadlineNs(AtNs(5700)), 6700u);
}

TEST(RegisterPageTest, TimerThatHadEndedStaysEnded) {
  LocalApic saved = EnabledXApic();
  (void)saved.WriteMmio(0x320, 0x000ef, AtNs(0));
  (void)saved.WriteMmio(0x380, 10, AtNs(0));
  saved.Advance(AtNs(20));
  LocalApic restored(ApicId(3), false);
  restored.FromPage(saved.ToPage(AtNs(300)), AtNs(5000));
  EXPECT_EQ(restored.NextDeadlineNs(AtNs(5000)), std::nullopt);
}

TEST(RegisterPageTest, RestoringRefusesReservedBits) {
  RegisterPage page;
  page.bytes.fill(0xff);
  LocalApic apic(ApicId(3), false);
  apic.FromPage(page, Time{});
  EXPECT_FALSE(apic.Pending(Vector(15)));
  EXPECT_TRUE(apic.Pending(Vector(16)));
  EXPECT_EQ(apic.ReadMmio(0x0f0, Time{}), 0x3ffu);
  EXPECT_EQ(apic.ReadMmio(0x300, Time{}), 0x000ccfffu);
  EXPECT_EQ(apic.ReadMmio(0x020, Time{}), 0x03000000u);
}

// What an enabled APIC reads of a register that has been restored as `value`.
uint32_t Restored(Reg reg, uint32_t value) {
  LocalApic apic = EnabledXApic();
  RegisterPage page = apic.ToPage(Time{});
  page.Set(reg, value);
  apic.FromPage(page, Time{});
  return apic.ReadMmio(static_cast<uint32_t>(reg), Time{});
}

// Found by the fuzzer: nothing would ever have set such an entry to idle again.
TEST(RegisterPageTest, RestoredDeliveryStatusIsIdle) {
  EXPECT_EQ(Restored(Reg::kLvtThermal, 0x11041), 0x10041u);
  EXPECT_EQ(Restored(Reg::kIcrLow, 0x01031), 0x00031u);
}

// Found by the fuzzer: bits 3:0 are errors of a bus that is not there.
TEST(RegisterPageTest, RestoredEsrHasDefinedBitsOnly) {
  EXPECT_EQ(Restored(Reg::kEsr, 0xffffffff), 0xf0u);
}

TEST(RegisterPageTest, RestoredDfrHasItsFixedOnes) {
  EXPECT_EQ(Restored(Reg::kDfr, 0), 0x0fffffffu);
}

TEST(RegisterPageTest, RestoredVectorsBelow16AreNowhere) {
  for (const Reg first : {Reg::kIrr0, Reg::kIsr0, Reg::kTmr0}) {
    EXPECT_EQ(Restored(first, 0xffffffff), 0xffff0000u) << std::hex << static_cast<uint32_t>(first);
  }
}

TEST(RegisterPageTest, RestoredRemoteIrrGoesWithTheEoiOfItsEntrysVector) {
  LocalApic saved = EnabledXApic();
  (void)saved.WriteMmio(0x350, 0x8041, Time{});
  (void)saved.RaiseLocal(LvtEntry::kLint0);
  saved.Acknowledge(Vector(0x41));
  LocalApic restored(ApicId(3), false);
  restored.FromPage(saved.ToPage(Time{}), Time{});
  EXPECT_EQ(restored.ReadMmio(0x350, Time{}), 0xc041u);
  (void)restored.WriteMmio(0x0b0, 0, Time{});
  EXPECT_EQ(restored.ReadMmio(0x350, Time{}), 0x8041u);
}

TEST(RegisterPageTest, RestoredDisabledApicDeliversNothing) {
  LocalApic apic = EnabledXApic();
  ASSERT_FALSE(apic.WriteApicBase(kApicBaseGpa).fault);
  RegisterPage page = apic.ToPage(Time{});
  page.Set(0x240, 0x00020000);  // IRR, vector 91H
  apic.FromPage(page, Time{});
  EXPECT_TRUE(apic.Pending(Vector(0x91)));
  EXPECT_EQ(apic.HighestDeliverable(), std::nullopt);
}

// Found by the fuzzer: a disabled APIC that is given a page stays unreachable.
TEST(RegisterPageTest, RestoredDisabledApicIsNotRoutedTo) {
  LocalApic apic = EnabledXApic();
  ASSERT_FALSE(apic.WriteApicBase(kApicBaseGpa).fault);
  RegisterPage page = apic.ToPage(Time{});
  page.Set(Reg::kSvr, 0x1ff);
  apic.FromPage(page, Time{});
  EXPECT_FALSE(apic.Routing().software_enabled);
}

}  // namespace
}  // namespace sipi::apic
