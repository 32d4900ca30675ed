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

// 11.4.1: only bytes 0 to 3 of a register exist; what touches more is undefined.
TEST(XApicAccessTest, NarrowLoadGivesItsPartOfTheRegister) {
  LocalApic apic = EnabledXApic(ApicId(0xab));
  EXPECT_EQ(apic.LoadMmio(0x020, 4, Time{}), 0xab000000u);
  EXPECT_EQ(apic.LoadMmio(0x023, 1, Time{}), 0xabu);
  EXPECT_EQ(apic.LoadMmio(0x022, 2, Time{}), 0xab00u);
  EXPECT_EQ(apic.LoadMmio(0x0f0, 2, Time{}), 0x1ffu);
}

TEST(XApicAccessTest, LoadThatTouchesBytes4To15GivesZero) {
  LocalApic apic = EnabledXApic();
  EXPECT_EQ(apic.LoadMmio(0x0f0, 8, Time{}), 0u);
  EXPECT_EQ(apic.LoadMmio(0x0f2, 4, Time{}), 0u);
  EXPECT_EQ(apic.LoadMmio(0x0f4, 1, Time{}), 0u);
  EXPECT_EQ(ErrorsOf(apic), 0u);
}

TEST(XApicAccessTest, OnlyAlignedStoresOf4BytesCount) {
  LocalApic apic = EnabledXApic();
  (void)apic.StoreMmio(0x080, 1, 0x50, Time{});
  (void)apic.StoreMmio(0x080, 2, 0x50, Time{});
  (void)apic.StoreMmio(0x080, 8, 0x50, Time{});
  (void)apic.StoreMmio(0x081, 4, 0x50, Time{});
  EXPECT_EQ(apic.tpr(), 0);
  EXPECT_EQ(apic.StoreMmio(0x080, 4, 0x50, Time{}).kind, Kind::kPriority);
  EXPECT_EQ(apic.tpr(), 0x50);
  EXPECT_EQ(ErrorsOf(apic), 0u);
}

// 11.5.3, bit 7: whatever the size.
TEST(XApicAccessTest, ReservedRegisterIsAnErrorAtEverySize) {
  for (const uint32_t bytes : {1u, 2u, 4u, 8u}) {
    LocalApic loads = EnabledXApic();
    (void)loads.LoadMmio(0x048, bytes, Time{});
    EXPECT_EQ(ErrorsOf(loads), kEsrIllegalRegister) << bytes;
    LocalApic stores = EnabledXApic();
    (void)stores.StoreMmio(0x048, bytes, 0, Time{});
    EXPECT_EQ(ErrorsOf(stores), kEsrIllegalRegister) << bytes;
  }
}

TEST(XApicAccessTest, DisabledApicReadsAllOnesAtEverySize) {
  LocalApic apic = EnabledXApic();
  ASSERT_FALSE(apic.WriteApicBase(kApicBaseGpa).fault);
  EXPECT_EQ(apic.LoadMmio(0x030, 1, Time{}), 0xffu);
  EXPECT_EQ(apic.LoadMmio(0x030, 8, Time{}), ~uint64_t{0});
  EXPECT_EQ(apic.StoreMmio(0x080, 4, 0x50, Time{}).kind, Kind::kNone);
}

// Where the page is not there, no access to it is one.
TEST(XApicAccessTest, NarrowStoreOutsideXApicModeIsNoError) {
  LocalApic wide = EnabledX2Apic();
  (void)wide.StoreMmio(0x048, 1, 0, Time{});
  EXPECT_FALSE(wide.WriteMsr(0x828, 0, Time{}).fault);
  EXPECT_EQ(wide.ReadMsr(0x828, Time{}).value, 0u);
  LocalApic disabled = EnabledXApic();
  ASSERT_FALSE(disabled.WriteApicBase(kApicBaseGpa).fault);
  (void)disabled.StoreMmio(0x048, 1, 0, Time{});
  ASSERT_FALSE(disabled.WriteApicBase(kApicBaseGpa | kApicBaseEnable).fault);
  EXPECT_EQ(ErrorsOf(disabled), 0u);
}

// 11.4.6: "some processors permit software to modify the APIC ID"; 11.4.7.3: INIT keeps it.
TEST(XApicAccessTest, AWritableIdIsPublishedAndSurvivesInit) {
  ApicConfig config;
  config.has_writable_xapic_id = true;
  LocalApic apic(ApicId(3), false, config);
  const WriteEffect effect = apic.WriteMmio(0x020, 0x2a'ffffff, Time{});
  EXPECT_EQ(effect.kind, WriteEffect::Kind::kRouting);
  EXPECT_EQ(apic.ReadMmio(0x020, Time{}), 0x2a000000u);
  EXPECT_TRUE(apic.Routing().has_written_id);
  EXPECT_EQ(apic.Routing().written_id, 0x2a);
  EXPECT_EQ(RoutingState::Unpack(apic.Routing().Pack()), apic.Routing());
  apic.Init();
  EXPECT_EQ(apic.ReadMmio(0x020, Time{}), 0x2a000000u);
  // x2APIC mode has the ID that the CPU was made with, 11.12.5.1; so has EN = 0 and 1 again.
  (void)apic.WriteApicBase(kApicBaseGpa | kApicBaseEnable | kApicBaseX2Apic);
  EXPECT_EQ(apic.ReadMsr(0x802, Time{}).value, 3u);
  EXPECT_FALSE(apic.Routing().has_written_id);
  (void)apic.WriteApicBase(kApicBaseGpa);
  (void)apic.WriteApicBase(kApicBaseGpa | kApicBaseEnable);
  EXPECT_EQ(apic.ReadMmio(0x020, Time{}), 0x03000000u);
}

// By way of "disabled", as a hypervisor adopts a step that it has not seen whole.
TEST(XApicAccessTest, AnAdoptedRoundThroughDisabledEndsAWrittenId) {
  LocalApic apic(ApicId(3), false, {.has_writable_xapic_id = true});
  (void)apic.WriteMmio(0x020, 0x2a000000, Time{});
  (void)apic.AdoptApicBase(kApicBaseGpa | kApicBaseEnable | kApicBaseX2Apic);
  (void)apic.AdoptApicBase(kApicBaseGpa | kApicBaseEnable);
  EXPECT_EQ(apic.ReadMmio(0x020, Time{}), 0x03000000u);
  EXPECT_FALSE(apic.Routing().has_written_id);
}

TEST(XApicAccessTest, AnIdIsReadOnlyUnlessConfigured) {
  LocalApic apic(ApicId(3), false);
  EXPECT_EQ(apic.WriteMmio(0x020, 0x2a000000, Time{}).kind, WriteEffect::Kind::kNone);
  EXPECT_EQ(apic.ReadMmio(0x020, Time{}), 0x03000000u);
}

// Table 11-1, note: "the illegal register access bit of the ESR will not be set".
TEST(XApicAccessTest, AprAndRemoteReadAreZeroWithoutAnError) {
  LocalApic apic = EnabledXApic();
  apic.Accept(Vector(0x91));
  apic.SetCr8(4);
  EXPECT_EQ(apic.ReadMmio(0x090, Time{}), 0u);
  EXPECT_EQ(apic.ReadMmio(0x0c0, Time{}), 0u);
  (void)apic.WriteMmio(0x090, 0xff, Time{});
  (void)apic.WriteMmio(0x0c0, 0xff, Time{});
  EXPECT_EQ(ErrorsOf(apic), 0u);
}

// Table 11-1: EOI is write-only; any value ends the interrupt (11.8.5 asks for 0).
TEST(XApicAccessTest, EoiTakesAnyValueAndReadsZero) {
  LocalApic apic = EnabledXApic();
  apic.Accept(Vector(0x31));
  apic.Acknowledge(Vector(0x31));
  EXPECT_EQ(apic.ReadMmio(0x0b0, Time{}), 0u);
  EXPECT_EQ(apic.WriteMmio(0x0b0, 0xdeadbeef, Time{}).kind, Kind::kEoi);
}

}  // namespace
}  // namespace sipi::apic
