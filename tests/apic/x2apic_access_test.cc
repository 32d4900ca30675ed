// Register access by MSR: what faults and what reads back (cases A10, A11).
#include <gtest/gtest.h>

#include "tests/apic/apic_builders.h"

namespace sipi::apic {
namespace {

TEST(X2ApicAccessTest, WholeRangeFaultsInXApicMode) {
  LocalApic apic = EnabledXApic();
  for (uint32_t msr = 0x800; msr <= 0x8ff; ++msr) {
    EXPECT_TRUE(apic.ReadMsr(msr, Time{}).fault) << std::hex << msr;
    EXPECT_TRUE(apic.WriteMsr(msr, 0, Time{}).fault) << std::hex << msr;
  }
}

TEST(X2ApicAccessTest, ExactlyTheSdmsRegistersAreReadable) {
  LocalApic apic = EnabledX2Apic();
  for (uint32_t msr = 0x800; msr <= 0x8ff; ++msr) {
    const bool readable = msr == 0x802 || msr == 0x803 || msr == 0x808 || msr == 0x80a ||
                          msr == 0x80d || msr == 0x80f || (msr >= 0x810 && msr <= 0x828) ||
                          msr == 0x82f || msr == 0x830 || (msr >= 0x832 && msr <= 0x839) ||
                          msr == 0x83e;
    EXPECT_EQ(apic.ReadMsr(msr, Time{}).fault, !readable) << std::hex << msr;
  }
}

TEST(X2ApicAccessTest, ExactlyTheSdmsRegistersAreWritable) {
  for (uint32_t msr = 0x800; msr <= 0x8ff; ++msr) {
    const bool writable = msr == 0x808 || msr == 0x80b || msr == 0x80f || msr == 0x828 ||
                          msr == 0x82f || msr == 0x830 || (msr >= 0x832 && msr <= 0x838) ||
                          msr == 0x83e || msr == 0x83f;
    LocalApic apic = EnabledX2Apic();
    EXPECT_EQ(apic.WriteMsr(msr, 0, Time{}).fault, !writable) << std::hex << msr;
  }
}

TEST(X2ApicAccessTest, OutsideTheRangeFaults) {
  LocalApic apic = EnabledX2Apic();
  EXPECT_TRUE(apic.ReadMsr(0x7ff, Time{}).fault);
  EXPECT_TRUE(apic.ReadMsr(0x900, Time{}).fault);
  EXPECT_TRUE(apic.WriteMsr(0x900, 0, Time{}).fault);
}

struct Writable {
  uint32_t msr;
  uint64_t accepted;  // bits that may be 1
};

class ReservedBitsTest : public testing::TestWithParam<Writable> {};

TEST_P(ReservedBitsTest, FaultOneAtATime) {
  const Writable reg = GetParam();
  for (int bit = 0; bit < 64; ++bit) {
    LocalApic apic = EnabledX2Apic();
    const uint64_t value = uint64_t{1} << bit;
    EXPECT_EQ(apic.WriteMsr(reg.msr, value, Time{}).fault, (reg.accepted & value) == 0)
        << std::hex << reg.msr << std::dec << " bit " << bit;
  }
}

INSTANTIATE_TEST_SUITE_P(EachRegister, ReservedBitsTest,
                         testing::Values(Writable{0x808, 0xff},        // TPR
                                         Writable{0x80b, 0},           // EOI
                                         Writable{0x80f, 0x3ff},       // SVR
                                         Writable{0x828, 0},           // ESR
                                         Writable{0x82f, 0x117ff},     // CMCI; 12 is read-only
                                         Writable{0x832, 0x710ff},     // timer
                                         Writable{0x833, 0x117ff},     // thermal
                                         Writable{0x834, 0x117ff},     // performance
                                         Writable{0x835, 0x1f7ff},     // LINT0; 14 is read-only
                                         Writable{0x836, 0x1f7ff},     // LINT1
                                         Writable{0x837, 0x110ff},     // error
                                         Writable{0x838, 0xffffffff},  // initial count
                                         Writable{0x83e, 0xb},         // divide
                                         Writable{0x83f, 0xff}));      // self IPI

TEST(X2ApicAccessTest, FaultingWriteChangesNothing) {
  LocalApic apic = EnabledX2Apic();
  (void)apic.WriteMsr(0x808, 0x40, Time{});
  EXPECT_TRUE(apic.WriteMsr(0x808, 0x150, Time{}).fault);
  EXPECT_EQ(apic.ReadMsr(0x808, Time{}).value, 0x40u);
}

TEST(X2ApicAccessTest, EoiWithOneFaults) {
  LocalApic apic = EnabledX2Apic();
  apic.Accept(Vector(0x31));
  apic.Acknowledge(Vector(0x31));
  EXPECT_TRUE(apic.WriteMsr(0x80b, 1, Time{}).fault);
  EXPECT_TRUE(apic.InService(Vector(0x31)));
  EXPECT_EQ(apic.WriteMsr(0x80b, 0, Time{}).kind, WriteEffect::Kind::kEoi);
}

TEST(X2ApicAccessTest, SelfIpiCannotBeRead) {
  EXPECT_TRUE(EnabledX2Apic().ReadMsr(0x83f, Time{}).fault);
}

TEST(X2ApicAccessTest, DfrFaults) {
  LocalApic apic = EnabledX2Apic();
  EXPECT_TRUE(apic.ReadMsr(0x80e, Time{}).fault);
  EXPECT_TRUE(apic.WriteMsr(0x80e, 0xffffffff, Time{}).fault);
}

TEST(X2ApicAccessTest, LogicalIdFollowsFromTheId) {
  for (uint32_t id = 0; id < 48; ++id) {
    LocalApic apic = EnabledX2Apic(ApicId(id));
    EXPECT_EQ(apic.ReadMsr(0x80d, Time{}).value, (id >> 4) << 16 | 1u << (id & 15)) << id;
  }
}

TEST(X2ApicAccessTest, LdrIsReadOnly) {
  EXPECT_TRUE(EnabledX2Apic().WriteMsr(0x80d, 1, Time{}).fault);
}

TEST(X2ApicAccessTest, IdIsThirtyTwoBitsWideAndReadOnly) {
  LocalApic apic = EnabledX2Apic(ApicId(0x00012345));
  EXPECT_EQ(apic.ReadMsr(0x802, Time{}).value, 0x00012345u);
  EXPECT_TRUE(apic.WriteMsr(0x802, 1, Time{}).fault);
}

TEST(X2ApicAccessTest, RegisterPageIsGone) {
  LocalApic apic = EnabledX2Apic();
  EXPECT_EQ(apic.ReadMmio(0x030, Time{}), 0xffffffffu);
  EXPECT_EQ(apic.WriteMmio(0x080, 0x40, Time{}).kind, WriteEffect::Kind::kNone);
  EXPECT_EQ(apic.tpr(), 0);
}

TEST(X2ApicAccessTest, IllegalRegisterFaultsButIsNoApicError) {
  LocalApic apic = EnabledX2Apic();
  EXPECT_TRUE(apic.ReadMsr(0x804, Time{}).fault);
  (void)apic.WriteMsr(0x828, 0, Time{});
  EXPECT_EQ(apic.ReadMsr(0x828, Time{}).value, 0u);
}

}  // namespace
}  // namespace sipi::apic
