// Register access by real guests: cases A11 and A12 of the APIC's list.
// Source: SDM vol 3A, 11.12.1.2 and 11.12.1.3 (x2APIC), 11.12.5 (mode changes).
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "tests/apic_kvm/program_fixture.h"

namespace sipi {
namespace {

class X2ApicAccess : public EachChip {
 protected:
  void SetUp() override {
    EachChip::SetUp();
    if (IsSkipped()) return;
    MakeProgrammed(Cpus(1));
    Enable(Of(0));
  }
  // Runs what the boot CPU was told. The names of the accesses that were not as expected.
  std::string Wrong() {
    Of(0).Exit();
    if (!RunPrograms()) return end_.text + Doings();
    std::string wrong;
    for (const auto& [index, name] : faulting_) {
      if (Result(Of(0), index).fault == 0) wrong += " " + name;
    }
    for (const auto& [index, name] : legal_) {
      if (Result(Of(0), index).fault != 0) wrong += " " + name + "(#GP)";
    }
    return wrong;
  }
  void ReadFaults(uint32_t msr) {
    faulting_.emplace_back(Of(0).Rdmsr(msr), absl::StrFormat("RDMSR(%03X)", msr));
  }
  void WriteFaults(uint32_t msr, uint64_t value) {
    faulting_.emplace_back(Of(0).Wrmsr(msr, value), absl::StrFormat("WRMSR(%03X,%X)", msr, value));
  }
  void WriteIsLegal(uint32_t msr, uint64_t value) {
    legal_.emplace_back(Of(0).Wrmsr(msr, value), absl::StrFormat("WRMSR(%03X,%X)", msr, value));
  }
  // Each bit of `reserved` by itself on top of `base` faults, and each bit of `legal` does not.
  void TryBits(Reg reg, uint64_t base, uint64_t reserved, uint64_t legal) {
    for (unsigned bit = 0; bit < 64; ++bit) {
      const uint64_t mask = uint64_t{1} << bit;
      if ((reserved & mask) != 0) WriteFaults(apic::X2ApicMsr(reg), base | mask);
      if ((legal & mask) != 0) WriteIsLegal(apic::X2ApicMsr(reg), base | mask);
    }
  }

  std::vector<std::pair<size_t, std::string>> faulting_;
  std::vector<std::pair<size_t, std::string>> legal_;
};

INSTANTIATE_TEST_SUITE_P(Irqchips, X2ApicAccess, testing::ValuesIn(kEachChip), IrqchipName);

TEST_P(X2ApicAccess, TheIcrKeepsAll64Bits) {
  Program& boot = Of(0);
  const uint64_t value = uint64_t{0x12c} << 32 | 0x4041;
  boot.WriteX2(Reg::kIcrLow, value);
  const size_t read = boot.ReadX2(Reg::kIcrLow);
  EXPECT_EQ(Wrong(), "");
  EXPECT_EQ(Result(boot, read).value(), value);
}

// Nobody has the ID, so nothing happens but the write.
TEST_P(X2ApicAccess, EachReservedBitOfTheIcrFaults) {
  constexpr uint64_t kReserved = 0xfff32000;  // 31:20, 17:16, 13
  constexpr uint64_t kLegal = 0xffffffff0000dfff & ~uint64_t{0x700};
  TryBits(Reg::kIcrLow, uint64_t{0x300} << 32 | 0x41, kReserved, kLegal);
  const std::string wrong = Wrong();
  SKIP_IF_KVM_DIFFERS(wrong.empty(), "reserved bits of the x2APIC ICR: " + wrong);
  EXPECT_EQ(wrong, "");
}

TEST_P(X2ApicAccess, EachReservedBitOfTheOtherRegistersFaults) {
  TryBits(Reg::kTpr, 0, ~uint64_t{0xff}, 0xff);
  WriteIsLegal(apic::X2ApicMsr(Reg::kTpr), 0);
  TryBits(Reg::kSvr, 0x1ff, ~uint64_t{0x1fff}, 0);  // bits 12:9 depend on the version
  TryBits(Reg::kLvtTimer, 0x10000, 0xfffffffffff8ef00, 0x300ff);
  TryBits(Reg::kLvtThermal, 0x10000, 0xfffffffffffee800, 0x107ff);
  TryBits(Reg::kLvtPerf, 0x10000, 0xfffffffffffee800, 0x107ff);
  TryBits(Reg::kLvtLint0, 0x10000, 0xfffffffffffe0800, 0x1a7ff);
  TryBits(Reg::kLvtLint1, 0x10000, 0xfffffffffffe0800, 0x1a7ff);
  TryBits(Reg::kLvtError, 0x10000, 0xfffffffffffeef00, 0x100ff);
  const std::string wrong = Wrong();
  SKIP_IF_KVM_DIFFERS(wrong.empty(), "reserved bits of x2APIC registers: " + wrong);
  EXPECT_EQ(wrong, "");
}

TEST_P(X2ApicAccess, EachReservedBitOfTheTimerEsrAndSelfIpiFaults) {
  TryBits(Reg::kTimerInitial, 0, 0xffffffff00000000, 0);
  TryBits(Reg::kTimerDivide, 0, ~uint64_t{0xb}, 0xb);
  TryBits(Reg::kEsr, 0, ~uint64_t{0}, 0);
  WriteIsLegal(apic::X2ApicMsr(Reg::kEsr), 0);
  TryBits(Reg::kEoi, 0, ~uint64_t{0}, 0);
  WriteIsLegal(apic::X2ApicMsr(Reg::kEoi), 0);
  TryBits(Reg::kSelfIpi, 0x41, ~uint64_t{0xff}, 0);
  const std::string wrong = Wrong();
  SKIP_IF_KVM_DIFFERS(wrong.empty(), "reserved bits of x2APIC registers: " + wrong);
  EXPECT_EQ(wrong, "");
}

// Those of the case's own list.
TEST_P(X2ApicAccess, TheIcrsUpperHalfAndReadingSelfIpiFault) {
  WriteFaults(0x831, 0);
  ReadFaults(0x831);
  ReadFaults(apic::X2ApicMsr(Reg::kSelfIpi));
  EXPECT_EQ(Wrong(), "");
}

TEST_P(X2ApicAccess, ReadOnlyRegistersFaultWhenWritten) {
  std::vector<uint32_t> read_only = {0x802, 0x803, 0x80a, 0x80d, 0x839};
  for (uint32_t msr = 0x810; msr < 0x828; ++msr) read_only.push_back(msr);  // ISR, TMR, IRR
  for (const uint32_t msr : read_only) WriteFaults(msr, 0);
  const std::string wrong = Wrong();
  SKIP_IF_KVM_DIFFERS(wrong.empty(), "writes to read-only x2APIC registers: " + wrong);
  EXPECT_EQ(wrong, "");
}

TEST_P(X2ApicAccess, WriteOnlyAndReservedRegistersFault) {
  ReadFaults(apic::X2ApicMsr(Reg::kEoi));
  for (const uint32_t msr : {0x800u, 0x801u, 0x804u, 0x807u, 0x809u, 0x80cu, 0x80eu, 0x829u, 0x82eu,
                             0x83au, 0x83du, 0x840u, 0x8ffu}) {
    ReadFaults(msr);
    WriteFaults(msr, 0);
  }
  const std::string wrong = Wrong();
  SKIP_IF_KVM_DIFFERS(wrong.empty(), "reserved x2APIC registers: " + wrong);
  EXPECT_EQ(wrong, "");
}

// CPUID, IA32_MCG_CAP and the version register tell of the same LVT entries.
TEST_P(X2ApicAccess, TheCmciEntryIsThereIfMcgCapSaysSo) {
  Program& boot = Of(0);
  const size_t mcg_cap = boot.Rdmsr(0x179);
  const size_t version = boot.ReadX2(Reg::kVersion);
  const size_t cmci = boot.ReadX2(Reg::kLvtCmci);
  ASSERT_EQ(Wrong(), "");
  const bool has_cmci = (Result(boot, mcg_cap).low >> 10 & 1) != 0;
  EXPECT_EQ(Result(boot, version).low >> 16 & 0xff, has_cmci ? 6u : 5u);
  EXPECT_EQ(Result(boot, cmci).fault, has_cmci ? 0u : 1u);
}

class XApicAccess : public EachMode {};
INSTANTIATE_TEST_SUITE_P(Modes, XApicAccess,
                         testing::Values(ChipAndMode{IrqchipKind::kUser, false},
                                         ChipAndMode{IrqchipKind::kSplit, false},
                                         ChipAndMode{IrqchipKind::kKernel, false}),
                         ChipAndModeName);

TEST_P(XApicAccess, DeliveryStatusIsIdleAtOnce) {
  constexpr uint32_t kDeliveryStatus = 1u << 12;
  MakeProgrammed(Cpus(1));
  Program& boot = Of(0);
  Enable(boot);
  std::vector<size_t> polls;
  for (const uint32_t dest : {0u, 0x4du, 0xffu}) {
    Send(boot, Fixed(dest, 0x41));
    polls.push_back(boot.ReadX(Reg::kIcrLow));
  }
  boot.Exit();
  ASSERT_TRUE(RunPrograms()) << end_.text << Doings();
  for (const size_t poll : polls) {
    EXPECT_EQ(Result(boot, poll).low & kDeliveryStatus, 0u);
    EXPECT_EQ(Result(boot, poll).low & 0xff, 0x41u);
  }
}

// Case A12.
class ApicBase : public EachChip {
 protected:
  static constexpr uint64_t kOff = apic::kApicBaseGpa;
  static constexpr uint64_t kXApic = kOff | apic::kApicBaseEnable;
  static constexpr uint64_t kX2Apic = kXApic | apic::kApicBaseX2Apic;
  static constexpr uint64_t kInvalid = kOff | apic::kApicBaseX2Apic;
};
INSTANTIATE_TEST_SUITE_P(Irqchips, ApicBase, testing::ValuesIn(kEachChip), IrqchipName);

TEST_P(ApicBase, TheBspBitIsTheBootCpusAlone) {
  MakeProgrammed(Cpus(8));
  std::vector<size_t> reads;
  Enable(Of(0));
  reads.push_back(Of(0).Rdmsr(apic::kMsrApicBase));
  StartOthers(Of(0));
  Of(0).Exit();
  for (uint32_t cpu = 1; cpu < 8; ++cpu) {
    Enable(Of(cpu));
    reads.push_back(Of(cpu).Rdmsr(apic::kMsrApicBase));
    Of(cpu).Increment(WordGpa(0));
    Of(cpu).Park();
  }
  ASSERT_TRUE(RunPrograms()) << end_.text << Doings();
  for (uint32_t cpu = 0; cpu < 8; ++cpu) {
    EXPECT_EQ(Result(Of(cpu), reads[cpu]).value(), kX2Apic | (cpu == 0 ? apic::kApicBaseBsp : 0));
  }
}

// 11.12.5, figure 11-27, from each mode.
TEST_P(ApicBase, IllegalModeChangesFaultAndChangeNothing) {
  struct Step {
    uint64_t value;
    bool faults;
    uint64_t then;
  };
  const std::vector<Step> steps = {
      {kX2Apic, false, kX2Apic},
      {kXApic, true, kX2Apic},
      {kInvalid, true, kX2Apic},
      {kOff, false, kOff},
      {kX2Apic, true, kOff},
      {kInvalid, true, kOff},
      {kXApic, false, kXApic},
      {kInvalid, true, kXApic},
      {kXApic | 1, true, kXApic},
      {kXApic | 1u << 9, true, kXApic},
      {kXApic | uint64_t{1} << 63, true, kXApic},
      {kOff, false, kOff},
      {kXApic, false, kXApic},
      {kX2Apic, false, kX2Apic},
  };
  MakeProgrammed(Cpus(1));
  Program& boot = Of(0);
  Enable(boot);
  std::vector<std::pair<size_t, size_t>> indices;
  for (const Step& step : steps) {
    const size_t write = boot.Wrmsr(apic::kMsrApicBase, step.value | apic::kApicBaseBsp);
    indices.emplace_back(write, boot.Rdmsr(apic::kMsrApicBase));
  }
  boot.Exit();
  ASSERT_TRUE(RunPrograms()) << end_.text << Doings();
  for (size_t i = 0; i < steps.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(Result(boot, indices[i].first).fault, steps[i].faults ? 1u : 0u);
    EXPECT_EQ(Result(boot, indices[i].second).value(), steps[i].then | apic::kApicBaseBsp);
  }
}

// 11.4.4: the base takes as many bits as CPUID 80000008H says.
TEST_P(ApicBase, AddressBitsBeyondThePhysicalWidthFault) {
  MakeProgrammed(Cpus(1));
  Program& boot = Of(0);
  const size_t leaf = boot.Cpuid(0x80000008, 0);
  std::vector<size_t> writes;
  for (unsigned bit = 36; bit < 64; ++bit) {
    writes.push_back(
        boot.Wrmsr(apic::kMsrApicBase, kX2Apic | apic::kApicBaseBsp | uint64_t{1} << bit));
  }
  boot.Exit();
  ASSERT_TRUE(RunPrograms()) << end_.text << Doings();
  const uint32_t width = Result(boot, leaf).low & 0xff;
  for (unsigned bit = 36; bit < 64; ++bit) {
    EXPECT_EQ(Result(boot, writes[bit - 36]).fault, bit >= width ? 1u : 0u) << bit;
  }
}

// 11.4.3: while IA32_APIC_BASE[11] is 0 the processor looks like one without an APIC.
TEST_P(ApicBase, CpuidShowsNoApicWhileItIsDisabled) {
  MakeProgrammed(Cpus(1));
  Program& boot = Of(0);
  Enable(boot);
  const size_t enabled = boot.Cpuid(1, 0);
  boot.Wrmsr(apic::kMsrApicBase, kOff | apic::kApicBaseBsp);
  const size_t disabled = boot.Cpuid(1, 0);
  boot.Wrmsr(apic::kMsrApicBase, kXApic | apic::kApicBaseBsp);
  const size_t again = boot.Cpuid(1, 0);
  boot.Exit();
  ASSERT_TRUE(RunPrograms()) << end_.text << Doings();
  EXPECT_EQ(Result(boot, enabled).high >> 9 & 1, 1u);
  EXPECT_EQ(Result(boot, disabled).high >> 9 & 1, 0u);
  EXPECT_EQ(Result(boot, again).high >> 9 & 1, 1u);
}

}  // namespace
}  // namespace sipi
