#include "tests/apic_kvm/program_fixture.h"

#include "vmm/base/status_macros.h"
#include "vmm/device/monotonic_clock.h"
#include "vmm/vcpu/lapic_page.h"
#include "vmm/vcpu/user_vcpu.h"

namespace sipi {
namespace {

// Flat, 32-bit, read and write: null, then the one that FS takes its limit from.
constexpr uint64_t kGdt[] = {0, 0x00cf93000000ffff};

#pragma pack(push, 1)
struct DescriptorTable {
  uint16_t limit;
  uint32_t base;
};
#pragma pack(pop)

uint16_t OffsetInInterpreter(const unsigned char* symbol) {
  return static_cast<uint16_t>(symbol - interpreter);
}

void SetVector(const GuestMemory& memory, uint32_t vector, uint16_t offset) {
  const uint32_t segment = kInterpreterGpa >> 4;
  **memory.At<uint32_t>(Gpa(uint64_t{vector} * 4)) = segment << 16 | offset;
}

}  // namespace

absl::Status LoadInterpreter(const GuestMemory& memory) {
  const std::span code(interpreter, interpreter_end);
  RETURN_IF_ERROR(memory.Write(Gpa(kInterpreterGpa), std::as_bytes(code)));
  RETURN_IF_ERROR(memory.Write(Gpa(kGdtGpa), std::as_bytes(std::span(kGdt))));
  const DescriptorTable gdtr = {sizeof kGdt - 1, kGdtGpa};
  RETURN_IF_ERROR(memory.Write(Gpa(kGdtrGpa), std::as_bytes(std::span(&gdtr, 1))));
  constexpr uint32_t kInterruptEntryBytes = 6;
  const uint32_t entries = OffsetInInterpreter(interpreter_interrupt_entries);
  for (uint32_t vector = 0; vector < 256; ++vector) {
    SetVector(memory, vector, static_cast<uint16_t>(entries + vector * kInterruptEntryBytes));
  }
  SetVector(memory, 13, OffsetInInterpreter(interpreter_protection_fault));
  return absl::OkStatus();
}

void EnterInterpreter(kvm_regs& regs, kvm_sregs& sregs) {
  sregs.cs.selector = kInterpreterGpa >> 4;
  sregs.cs.base = kInterpreterGpa;
  regs.rip = 0;
}

void ProgramTest::MakeProgrammed(MachineOptions options, uint64_t ram_bytes) {
  x2apic_ = options.apic_mode == abi::ApicMode::kX2Apic;
  user_ = options.irqchip == IrqchipKind::kUser;
  auto machine = Machine::Create(std::move(options));
  ASSERT_TRUE(machine.ok()) << machine.status();
  machine_ = std::move(*machine);
  programs_.clear();
  auto memory = GuestMemory::Create(ram_bytes);
  ASSERT_TRUE(memory.ok()) << memory.status();
  ASSERT_TRUE(LoadInterpreter(*memory).ok());
  ASSERT_TRUE(machine_->SetMemory(std::move(*memory)).ok());
  const absl::Status state = machine_->SetBootState(EnterInterpreter);
  ASSERT_TRUE(state.ok()) << state;
  for (uint32_t cpu = 0; cpu < machine_->cpus(); ++cpu) {
    Word(kAreaOfIdGpa + machine_->apic_id(CpuNumber(cpu)).value * uint64_t{4}) =
        static_cast<uint32_t>(Area(cpu));
    Word(Area(cpu) + AreaOffset::kProgram) = static_cast<uint32_t>(NewProgram().gpa());
  }
}

Program& ProgramTest::NewProgram() {
  return programs_.emplace_back(kProgramsGpa + programs_.size() * kProgramBytes);
}

bool ProgramTest::RunPrograms(int64_t time_limit_ms) {
  for (const Program& program : programs_) {
    const auto bytes = std::as_bytes(program.operations());
    EXPECT_LE(bytes.size(), kProgramBytes) << "a program is too long";
    EXPECT_TRUE(machine_->memory().Write(Gpa(program.gpa()), bytes).ok());
  }
  end_ = Run(time_limit_ms);
  return end_.kind == EndKind::kGuestExit;
}

Operation ProgramTest::Result(const Program& program, size_t index) {
  return *machine_->memory().At<Operation>(Gpa(program.gpa() + index * sizeof(Operation))).value();
}

void ProgramTest::Enable(Program& program) {
  // KVM starts an AP in xAPIC mode, whatever the boot CPU is in.
  if (x2apic_) {
    uint64_t base = apic::kApicBaseGpa | apic::kApicBaseEnable | apic::kApicBaseX2Apic;
    if (&program == &Of(0)) base |= apic::kApicBaseBsp;
    program.Wrmsr(apic::kMsrApicBase, base);
  }
  WriteReg(program, Reg::kSvr, 0x1ff);
}

void ProgramTest::Send(Program& program, const Icr& icr) {
  x2apic_ ? static_cast<void>(program.SendX2(icr)) : program.SendX(icr);
}

void ProgramTest::WriteReg(Program& program, Reg reg, uint32_t value) {
  x2apic_ ? program.WriteX2(reg, value) : program.WriteX(reg, value);
}

size_t ProgramTest::ReadReg(Program& program, Reg reg) {
  return x2apic_ ? program.ReadX2(reg) : program.ReadX(reg);
}

void ProgramTest::BeReachable(Program& boot) {
  boot.Out(abi::kDoorbellPort, static_cast<uint32_t>(abi::Doorbell::kBeforeKick));
}

void ProgramTest::StartOthers(Program& boot) {
  BeReachable(boot);
  Send(boot, Command(DeliveryMode::kInit, 0, 0, Shorthand::kAllExcludingSelf));
  for (int i = 0; i < 2; ++i) {
    Send(boot, Command(DeliveryMode::kStartUp, 0, kInterpreterSipi, Shorthand::kAllExcludingSelf));
  }
  boot.WaitFor(WordGpa(0), machine_->cpus() - 1);
}

void ProgramTest::Serve(uint32_t cpu) {
  EndInterrupts(cpu);
  Enable(Of(cpu));
  Of(cpu).Increment(WordGpa(0));
  Of(cpu).Stay();
}

void ProgramTest::Ping(Program& boot, uint32_t cpu, uint8_t vector, uint32_t times) {
  Send(boot, Fixed(machine_->apic_id(CpuNumber(cpu)).value, vector));
  boot.WaitFor(InterruptsGpa(cpu, vector), times);
}

apic::RegisterPage ProgramTest::PageOf(uint32_t cpu) {
  VcpuThread& thread = machine_->thread(CpuNumber(cpu));
  if (user_) {
    apic::LocalApic apic = static_cast<UserVcpu&>(thread).apic();
    return apic.ToPage({.ns = MonotonicNs(), .tsc = 0});
  }
  const absl::StatusOr<kvm_lapic_state> lapic = thread.vcpu().GetLapic();
  return lapic.ok() ? sipi::PageOf(*lapic) : apic::RegisterPage{};
}

}  // namespace sipi
