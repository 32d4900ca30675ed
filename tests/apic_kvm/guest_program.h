// Programs for a guest CPU as tables: the tests say what a CPU does with its APIC, operation by
// operation, and read the results from the same tables. interpreter.S runs them, in real mode.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "apic/regs/icr.h"
#include "apic/regs/registers.h"
#include "apic/regs/types.h"

namespace sipi {

// Guest-physical addresses. interpreter.S has the same.
inline constexpr uint64_t kInterpreterGpa = 0x8000;
inline constexpr uint8_t kInterpreterSipi = 8;  // SIPI vector
inline constexpr uint64_t kGdtrGpa = 0x520;
inline constexpr uint64_t kGdtGpa = 0x530;
inline constexpr uint64_t kWordsGpa = 0x600;      // 256 words for the tests, see Word()
inline constexpr uint64_t kAreaOfIdGpa = 0x4000;  // uint32_t per APIC ID below 4096
inline constexpr uint64_t kFirstAreaGpa = 0x10000;
inline constexpr uint64_t kAreaBytes = 0x1000;
inline constexpr uint64_t kProgramsGpa = 0x100000;

// What a CPU has in its area: kInterrupts counts the interrupts it took, one uint32_t per vector.
struct AreaOffset {
  static constexpr uint64_t kInterrupts = 0;
  static constexpr uint64_t kProgram = 0x400;   // GPA of the program; read at each start
  static constexpr uint64_t kStarts = 0x404;    // times that the interpreter was entered
  static constexpr uint64_t kEoiBy = 0x40c;     // EoiBy
  static constexpr uint64_t kLogCount = 0x410;  // of the interrupts taken
  static constexpr uint64_t kLog = 0x600;       // their vectors, one byte each; wraps at 256
};

// How the interrupt handler ends an interrupt.
enum class EoiBy : uint32_t { kNothing = 0, kMsr = 1, kMmio = 2 };

enum class OpCode : uint32_t {  // the order of interpreter.S
  kExit,                        // writes `low` to the exit port; runs the area's program after that
  kWrmsr,                       // MSR `address`; `fault` becomes 1 if it raised #GP
  kRdmsr,
  kMmioWrite,  // 4 bytes
  kMmioRead,
  kCpuid,      // leaf `address`, sub-leaf `low`; results in low (EAX), high (EDX), ebx, ecx
  kHalt,       // STI; HLT; CLI: takes one interrupt
  kStay,       // halts for good, with interrupts on
  kPark,       // halts for good, with interrupts off
  kWait,       // until the word at `address` is at least `low`
  kStore,      // `low` to the word at `address`
  kIncrement,  // the word at `address`
  kJump,       // to the operation at `address`
  kDelay,      // `low` TSC ticks
  kOut,        // port `address`, 4 bytes
  kTsc,
  kWindow,  // lets interrupts in for a moment
  kLoop,    // counts the word at `address` down; unless it is 0 then, to the operation at `low`
};

struct Operation {
  OpCode code = OpCode::kExit;
  uint32_t address = 0;
  uint32_t low = 0;
  uint32_t high = 0;
  uint32_t fault = 0;
  uint32_t ebx = 0;
  uint32_t ecx = 0;
  uint32_t unused = 0;

  uint64_t value() const { return uint64_t{high} << 32 | low; }
};
static_assert(sizeof(Operation) == 32);

// A program under construction. Each member function appends an operation and returns its index.
class Program {
 public:
  // `gpa`: where it will lie.
  explicit Program(uint64_t gpa = kProgramsGpa) : gpa_(gpa) {}

  uint64_t gpa() const { return gpa_; }
  std::span<const Operation> operations() const { return operations_; }
  uint64_t NextGpa() const { return gpa_ + operations_.size() * sizeof(Operation); }

  size_t Exit(uint32_t code = 0x31) { return Add({.code = OpCode::kExit, .low = code}); }
  size_t Wrmsr(uint32_t msr, uint64_t value) { return AddWide(OpCode::kWrmsr, msr, value); }
  size_t Rdmsr(uint32_t msr) { return Add({.code = OpCode::kRdmsr, .address = msr}); }
  size_t Write32(uint64_t gpa, uint32_t value) { return AddWide(OpCode::kMmioWrite, gpa, value); }
  size_t Read32(uint64_t gpa) { return AddWide(OpCode::kMmioRead, gpa, 0); }
  size_t Cpuid(uint32_t leaf, uint32_t sub_leaf) {
    return Add({.code = OpCode::kCpuid, .address = leaf, .low = sub_leaf});
  }
  size_t Halt() { return Add({.code = OpCode::kHalt}); }
  size_t Stay() { return Add({.code = OpCode::kStay}); }
  size_t Park() { return Add({.code = OpCode::kPark}); }
  size_t WaitFor(uint64_t gpa, uint32_t at_least) { return AddWide(OpCode::kWait, gpa, at_least); }
  size_t Store(uint64_t gpa, uint32_t value) { return AddWide(OpCode::kStore, gpa, value); }
  size_t Increment(uint64_t gpa) { return AddWide(OpCode::kIncrement, gpa, 0); }
  size_t JumpTo(size_t index) {
    return AddWide(OpCode::kJump, gpa_ + index * sizeof(Operation), 0);
  }
  size_t Delay(uint32_t tsc_ticks) { return Add({.code = OpCode::kDelay, .low = tsc_ticks}); }
  size_t Out(uint16_t port, uint32_t value) { return AddWide(OpCode::kOut, port, value); }
  size_t Tsc() { return Add({.code = OpCode::kTsc}); }
  // Runs the operations from `first` on `word` times, where `word` is what lies at `gpa`.
  size_t LoopTo(size_t first, uint64_t gpa) {
    return AddWide(OpCode::kLoop, gpa, gpa_ + first * sizeof(Operation));
  }
  size_t Window() { return Add({.code = OpCode::kWindow}); }

  // x2APIC registers.
  size_t WriteX2(apic::Reg reg, uint64_t value) { return Wrmsr(apic::X2ApicMsr(reg), value); }
  size_t ReadX2(apic::Reg reg) { return Rdmsr(apic::X2ApicMsr(reg)); }
  size_t SendX2(const apic::Icr& icr) { return WriteX2(apic::Reg::kIcrLow, icr.X2Apic()); }

  // xAPIC registers, at the page's default address.
  size_t WriteX(apic::Reg reg, uint32_t value) {
    return Write32(apic::kApicBaseGpa + static_cast<uint32_t>(reg), value);
  }
  size_t ReadX(apic::Reg reg) { return Read32(apic::kApicBaseGpa + static_cast<uint32_t>(reg)); }
  void SendX(const apic::Icr& icr) {
    WriteX(apic::Reg::kIcrHigh, icr.XApicHigh());
    WriteX(apic::Reg::kIcrLow, icr.Low());
  }

  size_t Add(const Operation& operation) {
    operations_.push_back(operation);
    return operations_.size() - 1;
  }

 private:
  size_t AddWide(OpCode code, uint64_t address, uint64_t value) {
    return Add({.code = code,
                .address = static_cast<uint32_t>(address),
                .low = static_cast<uint32_t>(value),
                .high = static_cast<uint32_t>(value >> 32)});
  }

  uint64_t gpa_;
  std::vector<Operation> operations_;
};

extern "C" const unsigned char interpreter[];
extern "C" const unsigned char interpreter_end[];
extern "C" const unsigned char interpreter_protection_fault[];
extern "C" const unsigned char interpreter_interrupt_entries[];

}  // namespace sipi
