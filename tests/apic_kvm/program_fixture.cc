#include "tests/apic_kvm/program_fixture.h"

#include <cstring>

#include "vmm/base/status_macros.h"

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
    if (bytes.size() > kProgramBytes) return false;
    if (!machine_->memory().Write(Gpa(program.gpa()), bytes).ok()) return false;
  }
  end_ = Run(time_limit_ms);
  return end_.kind == EndKind::kGuestExit;
}

Operation ProgramTest::Result(const Program& program, size_t index) {
  return *machine_->memory().At<Operation>(Gpa(program.gpa() + index * sizeof(Operation))).value();
}

void ProgramTest::EnableX2Apic(Program& program, bool bsp) {
  const uint64_t enabled =
      apic::kApicBaseGpa | apic::kApicBaseEnable | (bsp ? apic::kApicBaseBsp : 0);
  program.Wrmsr(apic::kMsrApicBase, enabled | apic::kApicBaseX2Apic);
  program.WriteX2(Reg::kSvr, 0x1ff);
}

void ProgramTest::StartOthers(Program& boot, bool x2apic, uint32_t aps) {
  boot.Out(abi::kDoorbellPort, static_cast<uint32_t>(abi::Doorbell::kBeforeKick));
  const Icr init = Command(DeliveryMode::kInit, 0, 0, Shorthand::kAllExcludingSelf);
  const Icr sipi =
      Command(DeliveryMode::kStartUp, 0, kInterpreterSipi, Shorthand::kAllExcludingSelf);
  for (const Icr& icr : {init, sipi, sipi}) {
    if (x2apic) {
      boot.SendX2(icr);
    } else {
      boot.SendX(icr);
    }
  }
  boot.WaitFor(WordGpa(0), aps);
}

void ProgramTest::ServeX2Apic(uint32_t cpu) {
  EnableX2Apic(Of(cpu));
  SetEoi(cpu, EoiBy::kMsr);
  Of(cpu).Increment(WordGpa(0));
  Of(cpu).Stay();
}

void ProgramTest::ServeXApic(uint32_t cpu, uint32_t ldr, uint32_t dfr) {
  Program& program = Of(cpu);
  EnableXApic(program);
  program.WriteX(Reg::kDfr, dfr);
  program.WriteX(Reg::kLdr, ldr);
  SetEoi(cpu, EoiBy::kMmio);
  program.Increment(WordGpa(0));
  program.Stay();
}

}  // namespace sipi
