// A CPU's registers after INIT and SIPI: case A7 of the APIC's list.
// Source: SDM vol 3A, table 10-1.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>

#include "tests/apic_kvm/program_fixture.h"
#include "tests/machine/payloads.h"

namespace sipi {
namespace payload {
SIPI_PAYLOAD(dirty)  // to long mode; changes every register that it can; halts
SIPI_PAYLOAD(dump)   // stores what it finds at kDumpGpa, in real mode; halts
}  // namespace payload

namespace {

constexpr uint64_t kDirtyGpa = 0x9000;
constexpr uint64_t kDumpCodeGpa = 0xa000;
constexpr uint64_t kDumpGpa = 0xb000;
constexpr uint64_t kDirtyGdtrGpa = 0x540;
constexpr uint64_t kDirtyGdtGpa = 0x550;
constexpr uint64_t kPml4Gpa = 0x200000;

#pragma pack(push, 1)
struct Dump {
  uint32_t eax, ebx, ecx, edx, esi, edi, ebp, esp;
  uint32_t eflags;
  uint32_t cr0, cr2, cr3, cr4;
  uint32_t dr0, dr3, dr6, dr7;
  uint64_t efer, pat, tsc_adjust, mtrr_default, apic_base, tsc;
  uint8_t xmm0[16];
};
struct Gdtr {
  uint16_t limit;
  uint32_t base;
};
#pragma pack(pop)
static_assert(sizeof(Dump) == 33 * 4);

constexpr uint64_t kDirtyPat = 0x0007040100070405;
constexpr uint64_t kDirtyMtrrDefault = 0x806;

class InitState : public EachChip {
 protected:
  // A machine whose AP gets dirty, then is restarted and dumps itself.
  void RunDirtyThenDump() {
    MachineOptions options = Cpus(2);
    options.thread_delay_ns = [this](CpuNumber cpu) -> uint64_t {
      if (cpu.value == 1) SetXcr0(machine_->thread(cpu).vcpu());
      return 0;
    };
    MakeProgrammed(std::move(options));
    WriteTables();
    Program& boot = Of(0);
    BeReachable(boot);
    Enable(boot);
    Send(boot, Command(DeliveryMode::kInit, 1));
    Send(boot, Command(DeliveryMode::kStartUp, 1, kDirtyGpa >> 12));
    boot.WaitFor(WordGpa(0), 1);
    signature_ = boot.Cpuid(1, 0);
    tsc_before_ = boot.Tsc();
    Send(boot, Command(DeliveryMode::kInit, 1));
    Send(boot, Command(DeliveryMode::kStartUp, 1, kDumpCodeGpa >> 12));
    boot.WaitFor(WordGpa(0), 2);
    boot.Exit();
    ASSERT_TRUE(RunPrograms()) << end_.text << Doings();
    std::memcpy(&dump_, machine_->memory().Pointer(Gpa(kDumpGpa), sizeof dump_), sizeof dump_);
  }

  // XSETBV does not exist where ring 0 is emulated, so the host does it, before the first INIT.
  void SetXcr0(Vcpu& ap) {
    kvm_xcrs xcrs = {};
    xcrs.nr_xcrs = 1;
    xcrs.xcrs[0].value = kXcr0;
    xcr0_set_ = ap.SetXcrs(xcrs).ok();
  }

  void WriteTables() {
    const GuestMemory& memory = machine_->memory();
    ASSERT_TRUE(memory.Write(Gpa(kDirtyGpa), payload::dirty()).ok());
    ASSERT_TRUE(memory.Write(Gpa(kDumpCodeGpa), payload::dump()).ok());
    // Null, 64-bit code, data.
    constexpr uint64_t kGdt[] = {0, 0x00af9b000000ffff, 0x00cf93000000ffff};
    const Gdtr gdtr = {sizeof kGdt - 1, kDirtyGdtGpa};
    ASSERT_TRUE(memory.Write(Gpa(kDirtyGdtGpa), std::as_bytes(std::span(kGdt))).ok());
    ASSERT_TRUE(memory.Write(Gpa(kDirtyGdtrGpa), std::as_bytes(std::span(&gdtr, 1))).ok());
    // The first GiB in pages of 2 MiB: present, writable, large.
    *memory.At<uint64_t>(Gpa(kPml4Gpa)).value() = (kPml4Gpa + 0x1000) | 3;
    *memory.At<uint64_t>(Gpa(kPml4Gpa + 0x1000)).value() = (kPml4Gpa + 0x2000) | 3;
    for (uint64_t i = 0; i < 512; ++i) {
      *memory.At<uint64_t>(Gpa(kPml4Gpa + 0x2000 + i * 8)).value() = i << 21 | 0x83;
    }
  }

  static constexpr uint64_t kXcr0 = 7;  // x87, SSE, AVX
  Dump dump_ = {};
  size_t tsc_before_ = 0;
  size_t signature_ = 0;
  bool xcr0_set_ = false;
};

INSTANTIATE_TEST_SUITE_P(Irqchips, InitState, testing::ValuesIn(kEachChip), IrqchipName);

TEST_P(InitState, RegistersAreReset) {
  RunDirtyThenDump();
  EXPECT_EQ(dump_.edx, Result(Of(0), signature_).low) << "family, model and stepping";
  const uint32_t others[] = {dump_.eax, dump_.ebx, dump_.ecx, dump_.esi,
                             dump_.edi, dump_.ebp, dump_.esp};
  for (const uint32_t other : others) EXPECT_EQ(other, 0u);
  EXPECT_EQ(dump_.eflags, 2u);
  EXPECT_EQ(dump_.cr0, 0x40000010u) << "CD and NW stay";
  EXPECT_EQ(dump_.cr2, 0u);
  EXPECT_EQ(dump_.cr3, 0u);
  EXPECT_EQ(dump_.cr4, 0u);
  EXPECT_EQ(dump_.efer, 0u);
  EXPECT_EQ(dump_.dr0, 0u);
  EXPECT_EQ(dump_.dr3, 0u);
  EXPECT_EQ(dump_.dr6, 0xffff0ff0u);
  EXPECT_EQ(dump_.dr7, 0x400u);
}

// What real mode cannot see: the host looks, while the AP halts after its dump.
TEST_P(InitState, TheUpperRegistersAndTheSegmentsAreReset) {
  RunDirtyThenDump();
  const auto regs = machine_->thread(CpuNumber(1)).vcpu().GetRegs();
  const auto sregs = machine_->thread(CpuNumber(1)).vcpu().GetSregs();
  ASSERT_TRUE(regs.ok() && sregs.ok());
  for (const uint64_t upper :
       {regs->r8, regs->r9, regs->r10, regs->r11, regs->r12, regs->r13, regs->r14, regs->r15}) {
    EXPECT_EQ(upper, 0u);
  }
  for (const kvm_segment& data : {sregs->ds, sregs->es, sregs->fs, sregs->gs, sregs->ss}) {
    EXPECT_EQ(data.selector, 0u);
    EXPECT_EQ(data.base, 0u);
    EXPECT_EQ(data.limit, 0xffffu);
    EXPECT_EQ(data.type & 0xe, 2u) << "read, write";
  }
  EXPECT_EQ(sregs->cs.limit, 0xffffu);
  EXPECT_EQ(sregs->gdt.base, 0u);
  EXPECT_EQ(sregs->gdt.limit, 0xffffu);
  EXPECT_EQ(sregs->idt.base, 0u);
  EXPECT_EQ(sregs->idt.limit, 0xffffu);
  EXPECT_EQ(sregs->ldt.limit, 0xffffu);
  EXPECT_EQ(sregs->tr.limit, 0xffffu);
}

TEST_P(InitState, MsrsTheTscAndTheExtendedStateAreKept) {
  RunDirtyThenDump();
  EXPECT_EQ(dump_.pat, kDirtyPat);
  EXPECT_EQ(dump_.mtrr_default, kDirtyMtrrDefault);
  EXPECT_EQ(dump_.tsc_adjust, 0u);
  EXPECT_GT(dump_.tsc, Result(Of(0), tsc_before_).value());
  EXPECT_EQ(dump_.apic_base & apic::kApicBaseBsp, 0u);
  Vcpu& ap = machine_->thread(CpuNumber(1)).vcpu();
  ASSERT_TRUE(xcr0_set_) << "KVM_SET_XCRS";
  const auto xcrs = ap.GetXcrs();
  ASSERT_TRUE(xcrs.ok());
  EXPECT_EQ(xcrs->xcrs[0].value, kXcr0);
  for (const uint8_t byte : dump_.xmm0) EXPECT_EQ(byte, 0x5a);
}

}  // namespace
}  // namespace sipi
