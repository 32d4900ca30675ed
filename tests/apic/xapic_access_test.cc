// Register access by MMIO.
#include <gtest/gtest.h>

#include "apic/regs/error_status.h"
#include "tests/apic/apic_builders.h"

namespace sipi::apic {
namespace {

using Kind = WriteEffect::Kind;

uint32_t ErrorsOf(LocalApic& apic) {
  (void)apic.WriteMmio(0x280, 0, Time{});
  return apic.ReadMmio(0x280, Time{});
}

TEST(XApicAccessTest, ExactlyTheReservedOffsetsAreErrors) {
  for (uint32_t offset = 0; offset < 0x1000; offset += 16) {
    const bool reserved = offset < 0x020 || (offset >= 0x040 && offset < 0x080) ||
                          (offset >= 0x290 && offset < 0x2f0) ||
                          (offset >= 0x3a0 && offset < 0x3e0) || offset >= 0x3f0;
    LocalApic apic = EnabledXApic();
    (void)apic.ReadMmio(offset, Time{});
    EXPECT_EQ(ErrorsOf(apic), reserved ? kEsrIllegalRegister : 0u) << std::hex << offset;
  }
}

TEST(XApicAccessTest, WritingAReservedOffsetIsAnErrorToo) {
  LocalApic apic = EnabledXApic();
  EXPECT_FALSE(apic.WriteMmio(0x3f0, 0x31, Time{}).fault);
  EXPECT_EQ(ErrorsOf(apic), kEsrIllegalRegister);
  EXPECT_FALSE(apic.Pending(Vector(0x31)));
}

TEST(XApicAccessTest, OffsetsBetweenRegistersReadZero) {
  LocalApic apic = EnabledXApic();
  EXPECT_EQ(apic.ReadMmio(0x034, Time{}), 0u);
}

TEST(XApicAccessTest, ReadOnlyRegistersIgnoreWrites) {
  LocalApic apic = EnabledXApic(ApicId(3));
  (void)apic.WriteMmio(0x020, 0x07000000, Time{});
  (void)apic.WriteMmio(0x030, 0, Time{});
  (void)apic.WriteMmio(0x200, 0xffffffff, Time{});
  EXPECT_EQ(apic.ReadMmio(0x020, Time{}), 0x03000000u);
  EXPECT_EQ(apic.ReadMmio(0x030, Time{}), 0x00060014u);
  EXPECT_EQ(apic.ReadMmio(0x200, Time{}), 0u);
  EXPECT_EQ(ErrorsOf(apic), 0u);
}

TEST(XApicAccessTest, WideIdShowsItsLowByte) {
  LocalApic apic = EnabledXApic(ApicId(0x12c));
  EXPECT_EQ(apic.ReadMmio(0x020, Time{}), 0x2c000000u);
}

TEST(XApicAccessTest, LdrAndDfrKeepTheirDefinedBitsAndChangeRouting) {
  LocalApic apic = EnabledXApic();
  EXPECT_EQ(apic.WriteMmio(0x0d0, 0x12345678, Time{}).kind, Kind::kRouting);
  EXPECT_EQ(apic.WriteMmio(0x0e0, 0x00000000, Time{}).kind, Kind::kRouting);
  EXPECT_EQ(apic.ReadMmio(0x0d0, Time{}), 0x12000000u);
  EXPECT_EQ(apic.ReadMmio(0x0e0, Time{}), 0x0fffffffu);
  EXPECT_EQ(apic.Routing().ldr, 0x12000000u);
  EXPECT_EQ(apic.Routing().dfr_model, 0);
}

TEST(XApicAccessTest, SvrEnableChangesRouting) {
  LocalApic apic(ApicId(0), false);
  EXPECT_EQ(apic.WriteMmio(0x0f0, 0x1ff, Time{}).kind, Kind::kRouting);
  EXPECT_TRUE(apic.Routing().software_enabled);
  EXPECT_EQ(apic.WriteMmio(0x0f0, 0x1f0, Time{}).kind, Kind::kNone);
}

TEST(XApicAccessTest, ReservedBitsAreIgnored) {
  LocalApic apic = EnabledXApic();
  (void)apic.WriteMmio(0x080, 0xffffff40, Time{});
  (void)apic.WriteMmio(0x0f0, 0xffffffff, Time{});
  (void)apic.WriteMmio(0x3e0, 0xffffffff, Time{});
  EXPECT_EQ(apic.ReadMmio(0x080, Time{}), 0x40u);
  EXPECT_EQ(apic.ReadMmio(0x0f0, Time{}), 0x3ffu);
  EXPECT_EQ(apic.ReadMmio(0x3e0, Time{}), 0xbu);
}

TEST(XApicAccessTest, DisabledApicReadsAllOnes) {
  LocalApic apic = EnabledXApic();
  ASSERT_FALSE(apic.WriteApicBase(kApicBaseGpa).fault);
  EXPECT_EQ(apic.ReadMmio(0x030, Time{}), 0xffffffffu);
}

}  // namespace
}  // namespace sipi::apic
