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

TEST(ErrorTest, AnErrorWhileMaskedLeavesTheInterruptToTheNextOne) {
  LocalApic apic = EnabledXApic();
  (void)apic.WriteMmio(0x370, 0x100fe, Time{});
  apic.Accept(Vector(0));
  (void)apic.WriteMmio(0x370, 0x000fe, Time{});
  EXPECT_FALSE(apic.Pending(Vector(0xfe)));
  apic.Accept(Vector(0));
  EXPECT_TRUE(apic.Pending(Vector(0xfe)));
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

// 11.5.3, bit 4: the IPI is not sent, and an illegal vector in it goes unnoticed.
TEST(ErrorTest, UnsupportedLowestPriorityIpiLogsRedirectableIpiAlone) {
  LocalApic apic(ApicId(0), false, {.has_lowest_priority_ipi = false});
  (void)apic.WriteMmio(0x0f0, 0x1ff, Time{});
  EXPECT_EQ(apic.WriteMmio(0x300, 0x00000105, Time{}).kind, WriteEffect::Kind::kNone);
  (void)apic.WriteMmio(0x280, 0, Time{});
  EXPECT_EQ(apic.ReadMmio(0x280, Time{}), kEsrRedirectableIpi);
  EXPECT_EQ(apic.ReadMmio(0x300, Time{}), 0x00000105u);
  EXPECT_EQ(apic.counters().Sent(DeliveryMode::kLowestPriority), 0u);
}

TEST(ErrorTest, SupportedLowestPriorityIpiIsSent) {
  LocalApic apic = EnabledXApic();
  EXPECT_EQ(apic.WriteMmio(0x300, 0x00000131, Time{}).kind, WriteEffect::Kind::kIpi);
  (void)apic.WriteMmio(0x280, 0, Time{});
  EXPECT_EQ(apic.ReadMmio(0x280, Time{}), 0u);
}

// 11.5.3, bit 5: lowest priority too; of the other delivery modes the vector is none.
TEST(ErrorTest, SendIllegalVectorConcernsFixedAndLowestPriorityOnly) {
  for (const uint32_t delivery_mode : {0u, 1u, 2u, 4u, 5u, 6u}) {
    LocalApic apic = EnabledXApic();
    (void)apic.WriteMmio(0x300, delivery_mode << 8 | 0x0f, Time{});
    (void)apic.WriteMmio(0x280, 0, Time{});
    EXPECT_EQ(apic.ReadMmio(0x280, Time{}), delivery_mode < 2 ? kEsrSendIllegalVector : 0u)
        << delivery_mode;
  }
}

// 11.5.3: errors of one period come out together.
TEST(ErrorTest, ErrorsAddUpUntilEsrIsWritten) {
  LocalApic apic = EnabledXApic();
  (void)apic.ReadMmio(kReservedOffset, Time{});
  (void)apic.WriteMmio(0x300, 0x0000000f, Time{});
  apic.Accept(Vector(3));
  (void)apic.WriteMmio(0x280, 0, Time{});
  EXPECT_EQ(apic.ReadMmio(0x280, Time{}),
            kEsrIllegalRegister | kEsrSendIllegalVector | kEsrReceiveIllegalVector);
}

// 11.5.3, 11.12.1.3: in x2APIC mode only 0 can be written.
TEST(ErrorTest, X2ApicEsrTakesOnlyZero) {
  LocalApic apic = EnabledX2Apic();
  apic.Accept(Vector(0));
  EXPECT_TRUE(apic.WriteMsr(0x828, 1, Time{}).fault);
  EXPECT_EQ(apic.ReadMsr(0x828, Time{}).value, 0u);
  EXPECT_FALSE(apic.WriteMsr(0x828, 0, Time{}).fault);
  EXPECT_EQ(apic.ReadMsr(0x828, Time{}).value, kEsrReceiveIllegalVector);
}

}  // namespace
}  // namespace sipi::apic
