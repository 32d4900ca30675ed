// INIT and Start-Up IPIs between vCPUs: cases A3 to A6 of the APIC's list.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "tests/apic_kvm/program_fixture.h"

namespace sipi {
namespace {

// For all files of this program.
INSTANTIATE_TEST_SUITE_P(Irqchips, EachIrqchipProgram,
                         testing::Values(IrqchipKind::kUser, IrqchipKind::kSplit,
                                         IrqchipKind::kKernel),
                         IrqchipName);

constexpr uint8_t kPing = 0x40;
constexpr uint8_t kStraySipi = 9;
constexpr uint64_t kStrayGpa = 0x9000 + 0x1000;  // its counter, behind its code

// The interpreter itself works: reads, faults, interrupts.
TEST_P(EachIrqchipProgram, ReadsFaultsAndInterruptsComeBack) {
  MakeProgrammed(Options(1, GetParam()));
  Program& boot = Of(0);
  SetEoi(0, EoiBy::kMsr);
  EnableX2Apic(boot, true);
  const size_t svr = boot.ReadX2(Reg::kSvr);
  const size_t fault = boot.Wrmsr(0x831, 0);
  boot.WriteX2(Reg::kSelfIpi, kPing);
  boot.Halt();
  const size_t leaf = boot.Cpuid(0, 0);
  boot.Exit(7);
  ASSERT_TRUE(RunPrograms()) << end_.text << Doings();
  EXPECT_EQ(end_.code, 7u);
  EXPECT_EQ(Result(boot, svr).value(), 0x1ffu);
  EXPECT_EQ(Result(boot, svr).fault, 0u);
  EXPECT_EQ(Result(boot, fault).fault, 1u);
  EXPECT_EQ(Interrupts(0, kPing), 1u);
  EXPECT_GE(Result(boot, leaf).low, 0xbu);
}

}  // namespace
}  // namespace sipi
