// CPU hotplug: one table of steps and one executor, as in Linux's kernel/cpu.c. A step is entered
// by storing its number in the CPU's slot and tracing it, before its callback runs.
#pragma once

#include <span>

#include "guest/abi/cpuhp_state.h"
#include "guest/kernel/kernel.h"

namespace sipi {

enum class [[nodiscard]] Error : uint32_t{
    kNone = 0,
    kTimeoutAlive = static_cast<uint32_t>(abi::GuestError::kTimeoutAlive),
    kTimeoutOnline = static_cast<uint32_t>(abi::GuestError::kTimeoutOnline),
    kStepFailed = static_cast<uint32_t>(abi::GuestError::kStepFailed),
    kCancelled = static_cast<uint32_t>(abi::GuestError::kCancelled),
};

// Where a step's callbacks run.
enum class Section : uint8_t {
  kPrepare,   // control CPU, may fail
  kStarting,  // the AP, interrupts off, must not fail
  kOnline,    // the AP, interrupts on, may fail
};

struct CpuhpStep {
  abi::CpuhpState state;
  Section section;
  bool can_fail;
  Error (*startup)(PerCpu& self,
                   CpuNumber cpu);  // `self` executes, `cpu` moves; null: nothing to do
  void (*teardown)(PerCpu& self, CpuNumber cpu);
};

// The table's part for one section, in the order in which a CPU comes up.
extern const CpuhpStep* const kCpuhpSectionBegin[];  // by section, and the table's end
inline std::span<const CpuhpStep> CpuhpSteps(Section section) {
  const auto index = static_cast<size_t>(section);
  return {kCpuhpSectionBegin[index], kCpuhpSectionBegin[index + 1]};
}

// The state that a CPU is in when nothing of the section has been done.
constexpr abi::CpuhpState StateBelow(Section section) {
  switch (section) {
    case Section::kPrepare:
      return abi::CpuhpState::kOffline;
    case Section::kStarting:
      return abi::CpuhpState::kBringupCpu;
    case Section::kOnline:
      return abi::CpuhpState::kApOnline;
  }
  return abi::CpuhpState::kOffline;
}

// Runs the startup callbacks of `section` for states above the CPU's own and up to `target`. On
// failure of a step all steps of this section that were done are undone in reverse order. Runs on
// the control CPU for PREPARE, on `cpu` itself for the other sections.
Error CpuhpUp(PerCpu& self, CpuNumber cpu, Section section, abi::CpuhpState target);

// Runs the teardown callbacks of `section` from the CPU's state down to below the section.
void CpuhpDown(PerCpu& self, CpuNumber cpu, Section section);

// How far the CPU has come: the control CPU's progress with it for PREPARE, its own for the other
// sections.
abi::CpuhpState CpuhpProgress(Kernel& kernel, CpuNumber cpu, Section section);

}  // namespace sipi
