// The CPU's registers after INIT and a Start-Up IPI (cases A5, A7).
#include "apic/model/cpu_reset.h"

#include <gtest/gtest.h>

namespace sipi::apic {
namespace {

constexpr uint32_t kSignature = 0x000806f8;  // family 6, model 8FH, stepping 8

TEST(CpuResetTest, InitKeepsOnlyCdAndNwOfCr0) {
  constexpr uint64_t kPagingAndCd = 0xc0050033;  // PG CD AM WP NE ET MP PE
  EXPECT_EQ(StateAfterInit(kSignature, kPagingAndCd).cr0, 0x40000010u);
  EXPECT_EQ(StateAfterInit(kSignature, ~uint64_t{0}).cr0, 0x60000010u);
  EXPECT_EQ(StateAfterInit(kSignature, 0x80050033).cr0, 0x10u);
}

TEST(CpuResetTest, PowerOnHasCachesOff) {
  EXPECT_EQ(StateAfterPowerOn(kSignature).cr0, 0x60000010u);
}

TEST(CpuResetTest, InitClearsControlRegistersAndEfer) {
  const CpuResetState state = StateAfterInit(kSignature, 0x80050033);
  EXPECT_EQ(state.cr2, 0u);
  EXPECT_EQ(state.cr3, 0u);
  EXPECT_EQ(state.cr4, 0u);
  EXPECT_EQ(state.cr8, 0u);
  EXPECT_EQ(state.efer, 0u);
}

TEST(CpuResetTest, InitLeavesGeneralRegistersZeroExceptDx) {
  const CpuResetState state = StateAfterInit(kSignature, 0);
  EXPECT_EQ(state.rdx, kSignature);
  EXPECT_EQ(state.other_gprs, 0u);
  EXPECT_EQ(state.rflags, 2u);
}

TEST(CpuResetTest, InitSetsDebugRegisters) {
  const CpuResetState state = StateAfterInit(kSignature, 0);
  EXPECT_EQ(state.dr0_to_dr3, 0u);
  EXPECT_EQ(state.dr6, 0xffff0ff0u);
  EXPECT_EQ(state.dr7, 0x400u);
}

TEST(CpuResetTest, InitPointsAtTheResetVector) {
  const CpuResetState state = StateAfterInit(kSignature, 0);
  EXPECT_EQ(state.cs.selector, 0xf000);
  EXPECT_EQ(state.cs.base + state.rip, 0xfffffff0u);
}

TEST(CpuResetTest, InitResetsSegmentsAndTables) {
  const CpuResetState state = StateAfterInit(kSignature, 0);
  EXPECT_EQ(state.data.selector, 0);
  EXPECT_EQ(state.data.base, 0u);
  EXPECT_EQ(state.data.limit, 0xffffu);
  EXPECT_EQ(state.gdtr.limit, 0xffff);
  EXPECT_EQ(state.idtr.base, 0u);
}

TEST(CpuResetTest, SipiVectorGivesSelectorAndBase) {
  EXPECT_EQ(EntryAfterSipi(Vector(0x00)).cs.base, 0u);
  EXPECT_EQ(EntryAfterSipi(Vector(0x01)).cs.selector, 0x0100);
  EXPECT_EQ(EntryAfterSipi(Vector(0x01)).cs.base, 0x1000u);
  EXPECT_EQ(EntryAfterSipi(Vector(0x9f)).cs.selector, 0x9f00);
  EXPECT_EQ(EntryAfterSipi(Vector(0x9f)).cs.base, 0x9f000u);
  EXPECT_EQ(EntryAfterSipi(Vector(0xff)).cs.selector, 0xff00);
  EXPECT_EQ(EntryAfterSipi(Vector(0xff)).cs.base, 0xff000u);
  EXPECT_EQ(EntryAfterSipi(Vector(0xff)).rip, 0u);
}

TEST(CpuResetTest, ReservedSipiVectorsAreA0ToBF) {
  EXPECT_FALSE(IsReservedSipiVector(Vector(0x9f)));
  EXPECT_TRUE(IsReservedSipiVector(Vector(0xa0)));
  EXPECT_TRUE(IsReservedSipiVector(Vector(0xbf)));
  EXPECT_FALSE(IsReservedSipiVector(Vector(0xc0)));
}

}  // namespace
}  // namespace sipi::apic
