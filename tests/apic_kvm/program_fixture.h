// A machine whose CPUs run programs (guest_program.h), with each irqchip.
#pragma once

#include <algorithm>
#include <deque>
#include <string>
#include <utility>

#include "apic/model/register_page.h"
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

  // --- Pieces of programs, in the mode of `x2apic_`.
  void Enable(Program& program);  // software enable
  void Send(Program& program, const Icr& icr);
  void WriteReg(Program& program, Reg reg, uint32_t value);
  size_t ReadReg(Program& program, Reg reg);
  // Makes sure that a message reaches every vCPU from here on. At the boot CPU's beginning.
  void BeReachable(Program& boot);
  // INIT and two SIPIs to everybody else; waits until all have counted themselves at TestWord(0).
  void StartOthers(Program& boot);
  // Enables the APIC, counts itself at TestWord(0), takes and ends interrupts for good.
  void Serve(uint32_t cpu);
  void EndInterrupts(uint32_t cpu) { SetEoi(cpu, x2apic_ ? EoiBy::kMsr : EoiBy::kMmio); }
  // `boot` sends `vector` to one CPU and waits until it has taken it `times` times in all.
  void Ping(Program& boot, uint32_t cpu, uint8_t vector, uint32_t times);

  // The boot CPU ends the machine once it has run its program. Fatal failure: it did not come to
  // that.
  void RunToExit() {
    Of(0).Exit();
    ASSERT_TRUE(RunPrograms()) << end_.text << Doings();
  }

  // After the run: the registers of a CPU's APIC.
  apic::RegisterPage PageOf(uint32_t cpu);

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
  bool x2apic_ = true;
  bool user_ = true;

 private:
  std::deque<Program> programs_;
};

// Tests that hold with each irqchip, in x2APIC mode.
class EachChip : public ProgramTest, public testing::WithParamInterface<IrqchipKind> {
 protected:
  MachineOptions Cpus(uint32_t cpus) { return Options(cpus, GetParam()); }
};

// Tests that hold with each irqchip in both modes.
struct ChipAndMode {
  IrqchipKind irqchip;
  bool x2apic;
};
class EachMode : public ProgramTest, public testing::WithParamInterface<ChipAndMode> {
 protected:
  MachineOptions Cpus(uint32_t cpus) {
    MachineOptions options = Options(cpus, GetParam().irqchip);
    options.apic_mode = GetParam().x2apic ? abi::ApicMode::kX2Apic : abi::ApicMode::kXApic;
    return options;
  }
};

inline std::string ChipAndModeName(const testing::TestParamInfo<ChipAndMode>& info) {
  return IrqchipName({info.param.irqchip, 0}) + (info.param.x2apic ? "X2Apic" : "XApic");
}

inline constexpr IrqchipKind kEachChip[] = {IrqchipKind::kUser, IrqchipKind::kSplit,
                                            IrqchipKind::kKernel};
inline constexpr ChipAndMode kEachMode[] = {
    {IrqchipKind::kUser, true},   {IrqchipKind::kUser, false},  {IrqchipKind::kSplit, true},
    {IrqchipKind::kSplit, false}, {IrqchipKind::kKernel, true}, {IrqchipKind::kKernel, false}};
inline constexpr ChipAndMode kEachUserMode[] = {{IrqchipKind::kUser, true},
                                                {IrqchipKind::kUser, false}};

// Where KVM's own APIC is known to differ from the SDM: `what` says how, with the section that
// decides, and stands in docs/apic.md. It is not asserted: another version of KVM may obey.
#define SKIP_IF_KVM_DIFFERS(obeyed, what)                                                     \
  if (!user_ && !(obeyed)) {                                                                  \
    GTEST_SKIP() << "KVM's own APIC differs from the SDM here, see docs/apic.md: " << (what); \
  }

}  // namespace sipi
