// The error status register and the error interrupt.
#include <gtest/gtest.h>

#include "apic/regs/error_status.h"
#include "tests/apic/apic_builders.h"

namespace sipi::apic {
namespace {

constexpr uint32_t kReservedOffset = 0x040;

TEST(ErrorTest, EsrShowsErrorsOnlyAfterAWrite) {
  LocalApic apic = EnabledXApic();
  (void)apic.ReadMmio(kReservedOffset, Time{});
  EXPECT_EQ(apic.ReadMmio(0x280, Time{}), 0u);
  (void)apic.WriteMmio(0x280, 0, Time{});
  EXPECT_EQ(apic.ReadMmio(0x280, Time{}), kEsrIllegalRegister);
}

TEST(ErrorTest, BackToBackWritesClearEsr) {
  LocalApic apic = EnabledXApic();
  (void)apic.ReadMmio(kReservedOffset, Time{});
  (void)apic.WriteMmio(0x280, 0, Time{});
  (void)apic.WriteMmio(0x280, 0, Time{});
  EXPECT_EQ(apic.ReadMmio(0x280, Time{}), 0u);
}

TEST(ErrorTest, XApicEsrWriteTakesAnyValueButStoresNone) {
  LocalApic apic = EnabledXApic();
  EXPECT_FALSE(apic.WriteMmio(0x280, 0xffffffff, Time{}).fault);
  EXPECT_EQ(apic.ReadMmio(0x280, Time{}), 0u);
}

TEST(ErrorTest, IcrWithIllegalVectorLogsSendError) {
  LocalApic apic = EnabledX2Apic();
  const WriteEffect effect = apic.WriteMsr(0x830, 0x500000000 | 0x0f, Time{});
  EXPECT_EQ(effect.kind, WriteEffect::Kind::kIpi);
  (void)apic.WriteMsr(0x828, 0, Time{});
  EXPECT_EQ(apic.ReadMsr(0x828, Time{}).value, kEsrSendIllegalVector);
}

TEST(ErrorTest, SipiWithALowVectorIsNoError) {
  LocalApic apic = EnabledX2Apic();
  (void)apic.WriteMsr(0x830, 0x00000608, Time{});
  (void)apic.WriteMsr(0x828, 0, Time{});
  EXPECT_EQ(apic.ReadMsr(0x828, Time{}).value, 0u);
}

TEST(ErrorTest, SelfIpiWithIllegalVectorLogsBothErrors) {
  LocalApic apic = EnabledX2Apic();
  (void)apic.WriteMsr(0x83f, 0x08, Time{});
  (void)apic.WriteMsr(0x828, 0, Time{});
  EXPECT_EQ(apic.ReadMsr(0x828, Time{}).value, kEsrSendIllegalVector | kEsrReceiveIllegalVector);
  EXPECT_FALSE(apic.Pending(Vector(8)));
}

TEST(ErrorTest, ReceivedIllegalVectorNeverEntersIrr) {
  LocalApic apic = EnabledXApic();
  EXPECT_FALSE(apic.Accept(Vector(0x0f)));
  EXPECT_TRUE(apic.Accept(Vector(0x10)));
  (void)apic.WriteMmio(0x280, 0, Time{});
  EXPECT_EQ(apic.ReadMmio(0x280, Time{}), kEsrReceiveIllegalVector);
  EXPECT_EQ(apic.ReadMmio(0x200, Time{}), 0x10000u);
}

TEST(ErrorTest, UnmaskedErrorEntryInterrupts) {
  LocalApic apic = EnabledXApic();
  (void)apic.WriteMmio(0x370, 0xfe, Time{});
  apic.Accept(Vector(0));
  EXPECT_TRUE(apic.Pending(Vector(0xfe)));
}

TEST(ErrorTest, MaskedErrorEntryCollectsButDoesNotInterrupt) {
  LocalApic apic = EnabledXApic();
  (void)apic.WriteMmio(0x370, 0x100fe, Time{});
  apic.Accept(Vector(0));
  EXPECT_FALSE(apic.Pending(Vector(0xfe)));
  (void)apic.WriteMmio(0x280, 0, Time{});
  EXPECT_EQ(apic.ReadMmio(0x280, Time{}), kEsrReceiveIllegalVector);
}

TEST(ErrorTest, ErrorInterruptComesOnceUntilEsrIsWritten) {
  LocalApic apic = EnabledXApic();
  (void)apic.WriteMmio(0x370, 0xfe, Time{});
  apic.Accept(Vector(0));
  apic.Acknowledge(Vector(0xfe));
  apic.Accept(Vector(0));
  EXPECT_FALSE(apic.Pending(Vector(0xfe)));
  (void)apic.WriteMmio(0x280, 0, Time{});
  apic.Accept(Vector(0));
  EXPECT_TRUE(apic.Pending(Vector(0xfe)));
}

TEST(ErrorTest, IllegalVectorInTheErrorEntryDoesNotRecurse) {
  LocalApic apic = EnabledXApic();
  (void)apic.WriteMmio(0x370, 0x05, Time{});
  (void)apic.ReadMmio(kReservedOffset, Time{});
  (void)apic.WriteMmio(0x280, 0, Time{});
  EXPECT_EQ(apic.ReadMmio(0x280, Time{}), kEsrIllegalRegister | kEsrReceiveIllegalVector);
}

TEST(ErrorTest, LvtWithIllegalVectorIsAnErrorWhenItDelivers) {
  LocalApic apic = EnabledXApic();
  (void)apic.WriteMmio(0x350, 0x00007, Time{});  // LINT0, fixed, vector 7
  (void)apic.WriteMmio(0x280, 0, Time{});
  EXPECT_EQ(apic.ReadMmio(0x280, Time{}), 0u);
  EXPECT_EQ(apic.RaiseLocal(LvtEntry::kLint0), LocalDelivery::kNone);
  (void)apic.WriteMmio(0x280, 0, Time{});
  EXPECT_EQ(apic.ReadMmio(0x280, Time{}), kEsrReceiveIllegalVector);
}

}  // namespace
}  // namespace sipi::apic
