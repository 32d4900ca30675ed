// A machine whose CPUs run programs (guest_program.h), with each irqchip.
#pragma once

#include <algorithm>
#include <deque>
#include <string>
#include <utility>

#include "tests/apic_kvm/guest_program.h"
#include "tests/machine/machine_fixture.h"

namespace sipi {

using apic::DeliveryMode;
using apic::Icr;
using apic::Reg;
using apic::Shorthand;

// Puts the interpreter, its descriptor table and its interrupt vectors into low memory.
absl::Status LoadInterpreter(const GuestMemory& memory);
// Starts a CPU at the interpreter, as a SIPI would.
void EnterInterpreter(kvm_regs& regs, kvm_sregs& sregs);

class ProgramTest : public MachineTest {
 protected:
  static constexpr uint64_t kProgramBytes = 0x4000;  // room for 512 operations

  // A machine whose every CPU has an empty program, and an AP that is started runs it.
  void MakeProgrammed(MachineOptions options, uint64_t ram_bytes = 8 << 20);

  // The first program of a CPU.
  Program& Of(uint32_t cpu) { return programs_[cpu]; }
  // One more program, for nobody yet.
  Program& NewProgram();
  // Writes the programs to memory and runs until the guest ends; true if it ended by kExit.
  bool RunPrograms(int64_t time_limit_ms = 20'000);

  // After the run: what became of an operation.
  Operation Result(const Program& program, size_t index);

  uint64_t Area(uint32_t cpu) const { return kFirstAreaGpa + cpu * kAreaBytes; }
  static uint64_t WordGpa(uint32_t index) { return kWordsGpa + index * 4; }
  uint32_t TestWord(uint32_t index) { return Word(WordGpa(index)); }
  uint64_t InterruptsGpa(uint32_t cpu, uint8_t vector) const { return Area(cpu) + vector * 4u; }
  uint32_t Interrupts(uint32_t cpu, uint8_t vector) { return Word(InterruptsGpa(cpu, vector)); }
  uint64_t StartsGpa(uint32_t cpu) const { return Area(cpu) + AreaOffset::kStarts; }
  uint32_t Starts(uint32_t cpu) { return Word(StartsGpa(cpu)); }
  void SetEoi(uint32_t cpu, EoiBy by) {
    Word(Area(cpu) + AreaOffset::kEoiBy) = static_cast<uint32_t>(by);
  }

  // --- Pieces of programs.
  // x2APIC mode by way of what the CPU is in, and software enable.
  static void EnableX2Apic(Program& program, bool bsp = false);
  // Software enable in xAPIC mode.
  static void EnableXApic(Program& program) { program.WriteX(Reg::kSvr, 0x1ff); }
  // INIT and two SIPIs to everybody else, then waits until `aps` have counted themselves at
  // TestWord(0).
  void StartOthers(Program& boot, bool x2apic, uint32_t aps);
  // x2APIC: enables, counts itself at TestWord(0), takes interrupts for good.
  void ServeX2Apic(uint32_t cpu);
  void ServeXApic(uint32_t cpu, uint32_t ldr = 0, uint32_t dfr = 0xffffffff);

  static Icr Command(DeliveryMode mode, uint32_t dest, uint8_t vector = 0,
                     Shorthand shorthand = Shorthand::kNone, bool logical = false) {
    Icr icr;
    icr.mode = mode;
    icr.dest = dest;
    icr.vector = Vector(vector);
    icr.shorthand = shorthand;
    icr.logical = logical;
    return icr;
  }
  static Icr Fixed(uint32_t dest, uint8_t vector) {
    return Command(DeliveryMode::kFixed, dest, vector);
  }

  RunEnd end_;

 private:
  std::deque<Program> programs_;
};

class EachIrqchipProgram : public ProgramTest, public testing::WithParamInterface<IrqchipKind> {
 protected:
  bool user() const { return GetParam() == IrqchipKind::kUser; }
};

// Where KVM's own APIC is known to differ from the SDM, with the section that decides. `what` stands
// in docs/apic.md. What this KVM does is in the skip's text, not asserted: another version may obey.
#define SKIP_AS_KVM_DIFFERS(what) \
  GTEST_SKIP() << "KVM's own APIC differs from the SDM (docs/apic.md): " << (what)

}  // namespace sipi
