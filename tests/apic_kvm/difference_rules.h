// Where KVM's own local APIC and the model are known to differ, and which of them the SDM backs.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "apic/regs/apic_base.h"
#include "tests/apic_kvm/guest_program.h"

namespace sipi {

// One thing that the two sides do not agree on after an access.
struct Difference {
  enum class Kind : uint8_t {
    kFault,        // whether the access raised #GP
    kValue,        // what a read gave
    kRegister,     // the register at `offset` of the page
    kApicBase,     // IA32_APIC_BASE
    kTscDeadline,  // IA32_TSC_DEADLINE
    kInterrupt,    // which interrupt the CPU took
  };
  Kind kind = Kind::kFault;
  Operation operation;                              // as generated
  apic::ApicMode mode = apic::ApicMode::kDisabled;  // before it
  uint32_t offset = 0;
  uint64_t model = 0;
  uint64_t kvm = 0;
  // The whole step, for rules that explain more than the register written.
  bool model_faults = false;
  bool kvm_faults = false;
  apic::ApicMode mode_after = apic::ApicMode::kDisabled;  // the model's
  uint32_t lvt_timer_before = 0;
  uint32_t lvt_timer_after = 0;
  uint32_t lvt_error = 0;

  bool writes() const {
    return operation.code == OpCode::kWrmsr || operation.code == OpCode::kMmioWrite;
  }
  // The register that the access is to, as an offset in the page; ~0 for another MSR.
  uint32_t Target() const;
  std::string ToString() const;
};

struct Rule {
  const char* name;
  const char* section;  // of the SDM, vol 3A
  const char* verdict;  // whom it backs
  bool (*explains)(const Difference&);
};

std::span<const Rule> DifferenceRules();
// Null: nothing explains it.
const Rule* Explain(const Difference& difference);

}  // namespace sipi
