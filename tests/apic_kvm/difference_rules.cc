#include "tests/apic_kvm/difference_rules.h"

#include "absl/strings/str_format.h"
#include "apic/model/register_map.h"
#include "apic/regs/error_status.h"
#include "apic/regs/icr.h"
#include "apic/regs/lvt.h"
#include "apic/regs/registers.h"

namespace sipi {
namespace {

using Kind = Difference::Kind;
using apic::ApicMode;
using apic::Reg;

constexpr uint32_t Offset(Reg reg) { return static_cast<uint32_t>(reg); }
constexpr uint32_t kIsr = Offset(Reg::kIsr0);
constexpr uint32_t kTmr = Offset(Reg::kTmr0);
constexpr uint32_t kIrr = Offset(Reg::kIrr0);
constexpr uint32_t kReservedTimerMode = 3;

bool IsRegister(const Difference& d, Reg reg) {
  return d.kind == Kind::kRegister && d.offset == Offset(reg);
}
bool IsLvt(uint32_t offset) {
  return apic::LvtIndexOf(static_cast<Reg>(offset)) < apic::kLvtEntryCount;
}
// Is the difference one of the eight registers of a bitmap, and nothing but `vector` in it?
bool IsBit(const Difference& d, uint32_t bitmap, uint32_t vector) {
  return d.kind == Kind::kRegister && d.offset == bitmap + vector / 32 * 16 &&
         (d.model ^ d.kvm) == uint64_t{1} << vector % 32;
}
bool InBitmap(const Difference& d, uint32_t bitmap) {
  return d.kind == Kind::kRegister && d.offset >= bitmap && d.offset < bitmap + 0x80;
}
bool KvmHasMore(const Difference& d) { return (d.model & ~d.kvm) == 0; }
bool ModelHasMore(const Difference& d) { return (d.kvm & ~d.model) == 0; }
bool WritesTo(const Difference& d, Reg reg) { return d.writes() && d.Target() == Offset(reg); }

// The command that a write to the ICR sends. The destination does not matter here.
apic::Icr CommandOf(const Difference& d) { return apic::Icr::FromLow(d.operation.low, 0); }

// --- The rules, in the order of the table below.

bool NoErrorStatus(const Difference& d) {
  return IsRegister(d, Reg::kEsr) || (d.kind == Kind::kValue && d.Target() == Offset(Reg::kEsr));
}

bool NoErrorInterrupt(const Difference& d) {
  return IsBit(d, kIrr, d.lvt_error & 0xff) && ModelHasMore(d);
}

bool TakesIllegalVectors(const Difference& d) {
  const Vector vector = CommandOf(d).vector;
  const bool sends = WritesTo(d, Reg::kIcrLow) || WritesTo(d, Reg::kSelfIpi);
  if (!sends || !apic::IsIllegalVector(vector) || d.kind != Kind::kRegister) return false;
  // The error interrupt that only the model raises may be in the same register.
  const uint32_t error = d.lvt_error & 0xff;
  const uint64_t error_bit = error < 32 ? uint64_t{1} << error : 0;
  const uint64_t vector_bit = uint64_t{1} << vector.value;
  const uint64_t bits = d.model ^ d.kvm;
  return d.offset == kIrr && (bits & vector_bit) != 0 && (bits & ~vector_bit & ~error_bit) == 0;
}

bool LowestPriorityToSelfByShorthand(const Difference& d) {
  const apic::Icr icr = CommandOf(d);
  return WritesTo(d, Reg::kIcrLow) && icr.mode == apic::DeliveryMode::kLowestPriority &&
         (icr.shorthand == apic::Shorthand::kSelf ||
          icr.shorthand == apic::Shorthand::kAllIncludingSelf) &&
         IsBit(d, kIrr, icr.vector.value) && KvmHasMore(d);
}

bool LowestPriorityGoesToAnAbsentCpu(const Difference& d) {
  const apic::Icr icr = CommandOf(d);
  return WritesTo(d, Reg::kIcrLow) && icr.mode == apic::DeliveryMode::kLowestPriority &&
         icr.logical && icr.shorthand == apic::Shorthand::kNone &&
         IsBit(d, kIrr, icr.vector.value) && ModelHasMore(d);
}

bool LevelDeassertOfAFixedIpiIsLost(const Difference& d) {
  const apic::Icr icr = CommandOf(d);
  return WritesTo(d, Reg::kIcrLow) && icr.level_triggered && !icr.assert_level &&
         IsBit(d, kIrr, icr.vector.value) && ModelHasMore(d);
}

bool LevelTriggeredIpiSetsTmr(const Difference& d) {
  const apic::Icr icr = CommandOf(d);
  return WritesTo(d, Reg::kIcrLow) && icr.level_triggered && icr.assert_level &&
         IsBit(d, kTmr, icr.vector.value) && KvmHasMore(d);
}

bool IcrKeepsReservedBits(const Difference& d) {
  const uint64_t reserved = static_cast<uint32_t>(~apic::kIcrLowWritable);
  return IsRegister(d, Reg::kIcrLow) && d.mode == ApicMode::kXApic && WritesTo(d, Reg::kIcrLow) &&
         ((d.model ^ d.kvm) & ~reserved) == 0 && KvmHasMore(d);
}

bool LvtReadOnlyBitsAreWritten(const Difference& d) {
  constexpr uint64_t kReadOnly = apic::kLvtDeliveryStatus | apic::kLvtRemoteIrr;
  return d.kind == Kind::kRegister && IsLvt(d.offset) && d.writes() && d.Target() == d.offset &&
         ((d.model ^ d.kvm) & ~kReadOnly) == 0;
}

// What a write with reserved bits changes when it is let through: the register itself and what
// follows from it.
bool FollowsFrom(uint32_t target, uint32_t offset) {
  if (offset == target) return true;
  switch (static_cast<Reg>(target)) {
    case Reg::kTpr:
      return offset == Offset(Reg::kPpr);
    case Reg::kEoi:
      return offset == Offset(Reg::kPpr) || (offset >= kIsr && offset < kTmr);
    case Reg::kSvr:
      return IsLvt(offset);
    case Reg::kLvtTimer:
    case Reg::kTimerDivide:
      return offset == Offset(Reg::kTimerInitial) || offset == Offset(Reg::kTimerCurrent);
    default:
      return false;
  }
}

bool X2ApicReservedBitsPass(const Difference& d) {
  if (d.operation.code != OpCode::kWrmsr || d.mode != ApicMode::kX2Apic) return false;
  if (!d.model_faults || d.kvm_faults) return false;
  const Reg reg = static_cast<Reg>(d.Target());
  const bool unchecked = reg == Reg::kTpr || reg == Reg::kEoi || reg == Reg::kSvr ||
                         reg == Reg::kTimerDivide || IsLvt(d.Target());
  if (!unchecked) return false;
  return d.kind == Kind::kFault ||
         (d.kind == Kind::kRegister && FollowsFrom(d.Target(), d.offset)) ||
         (d.kind == Kind::kTscDeadline && reg == Reg::kLvtTimer);
}

bool UnreadableRegisterReadsAsAnything(const Difference& d) {
  apic::ApicConfig config;
  config.has_cmci = false;
  if (d.kind != Kind::kValue || d.operation.code != OpCode::kMmioRead) return false;
  const apic::Access access = apic::RegisterAccess(d.Target(), false, config);
  return d.mode == ApicMode::kXApic &&
         (access == apic::Access::kReserved || access == apic::Access::kWriteOnly ||
          d.Target() == Offset(Reg::kRrd));
}

bool DisabledApicKeepsItsRegisters(const Difference& d) {
  return d.operation.code == OpCode::kWrmsr && d.operation.address == apic::kMsrApicBase &&
         d.mode != ApicMode::kDisabled && d.mode_after == ApicMode::kDisabled &&
         (d.kind == Kind::kRegister || d.kind == Kind::kTscDeadline);
}

bool BootCpusLint0IsExtInt(const Difference& d) {
  return IsRegister(d, Reg::kLvtLint0) && d.operation.code == OpCode::kDelay && d.kvm == 0x700;
}

bool ReservedTimerModeCounts(const Difference& d) {
  const bool reserved =
      static_cast<uint32_t>(apic::LvtTimerMode(d.lvt_timer_before)) == kReservedTimerMode ||
      static_cast<uint32_t>(apic::LvtTimerMode(d.lvt_timer_after)) == kReservedTimerMode;
  const bool count = IsRegister(d, Reg::kTimerInitial) || IsRegister(d, Reg::kTimerCurrent) ||
                     (d.kind == Kind::kValue && d.Target() == Offset(Reg::kTimerCurrent));
  return reserved && count;
}

bool TakenInterruptIsNotInService(const Difference& d) {
  return d.operation.code == OpCode::kHalt &&
         ((InBitmap(d, kIsr) && ModelHasMore(d)) || IsRegister(d, Reg::kPpr));
}

constexpr Rule kRules[] = {
    {"KVM has no error status: ESR never changes", "11.5.3", "the model", NoErrorStatus},
    {"KVM raises no error interrupt", "11.5.3", "the model", NoErrorInterrupt},
    {"KVM puts vectors 0 to 15 into IRR", "11.5.2, 11.8.4", "the model", TakesIllegalVectors},
    {"KVM delivers lowest priority with the shorthands self and all-including-self",
     "11.6.1, table 11-3", "the model", LowestPriorityToSelfByShorthand},
    {"KVM may give a lowest-priority IPI to a CPU that does not exist", "11.6.2.4", "the model",
     LowestPriorityGoesToAnAbsentCpu},
    {"KVM loses a fixed IPI with trigger mode 1 and level 0", "11.6.1", "the model",
     LevelDeassertOfAFixedIpiIsLost},
    {"KVM sets TMR for an IPI with trigger mode 1", "11.6.1, 11.8.4", "the model",
     LevelTriggeredIpiSetsTmr},
    {"KVM keeps reserved bits of the xAPIC's ICR", "11.6.1", "neither", IcrKeepsReservedBits},
    {"KVM lets software write an LVT entry's delivery status and remote IRR", "11.5.1", "the model",
     LvtReadOnlyBitsAreWritten},
    {"KVM does not check reserved bits of TPR, EOI, SVR, LVT and divide in x2APIC mode",
     "11.12.1.3", "the model", X2ApicReservedBitsPass},
    {"KVM gives rubbish for an xAPIC register that cannot be read", "11.4.1, 11.5.3", "the model",
     UnreadableRegisterReadsAsAnything},
    {"KVM keeps the registers of a hardware-disabled APIC", "11.4.3", "both",
     DisabledApicKeepsItsRegisters},
    {"KVM's boot CPU has LINT0 as ExtINT after reset", "11.4.7.1", "the model",
     BootCpusLint0IsExtInt},
    {"KVM counts in the reserved timer mode 3", "11.5.1", "neither", ReservedTimerModeCounts},
    {"This KVM does not put a taken interrupt into ISR", "11.8.4", "the model",
     TakenInterruptIsNotInService},
};

}  // namespace

uint32_t Difference::Target() const {
  const uint32_t address = operation.address;
  if (operation.code == OpCode::kMmioRead || operation.code == OpCode::kMmioWrite) {
    return address & 0xfff;
  }
  const bool x2apic = address >= apic::kX2ApicMsrFirst && address <= apic::kX2ApicMsrLast;
  return x2apic ? (address - apic::kX2ApicMsrFirst) * 16 : ~0u;
}

std::string Difference::ToString() const {
  constexpr const char* kModes[] = {"disabled", "xAPIC", "x2APIC"};
  constexpr const char* kKinds[] = {"fault",     "value",        "register",
                                    "APIC base", "TSC deadline", "interrupt"};
  constexpr const char* kCodes[] = {"exit", "WRMSR", "RDMSR", "MMIO write", "MMIO read"};
  const uint32_t code = static_cast<uint32_t>(operation.code);
  return absl::StrFormat("%s %X of %X in %s mode: %s %X: model %X, KVM %X",
                         code < 5 ? kCodes[code] : "HLT", operation.address, operation.value(),
                         kModes[static_cast<size_t>(mode)], kKinds[static_cast<size_t>(kind)],
                         offset, model, kvm);
}

std::span<const Rule> DifferenceRules() { return kRules; }

const Rule* Explain(const Difference& difference) {
  for (const Rule& rule : kRules) {
    if (rule.explains(difference)) return &rule;
  }
  return nullptr;
}

}  // namespace sipi
