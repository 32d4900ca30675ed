// CPU hotplug: one table of steps, as in Linux's kernel/cpu.c, and the executor of plain bring-up.
// A step is entered by storing its number in the CPU's slot and tracing it, before its callback
// runs. With KernelKnobs::services the steps are walked by guest/kernel/hotplug.
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
    kInvalid = static_cast<uint32_t>(abi::GuestError::kInvalid),
    kNotBootable = static_cast<uint32_t>(abi::GuestError::kNotBootable),
    kTimeoutDead = static_cast<uint32_t>(abi::GuestError::kTimeoutDead),
};

// Where a step's callbacks run.
enum class Section : uint8_t {
  kPrepare,   // control CPU, may fail
  kStarting,  // the AP, interrupts off, must not fail
  kTeardown,  // control CPU, may fail; on the way down only
  kOnline,    // the AP, interrupts on, may fail
};
inline constexpr size_t kSections = 4;

struct CpuhpStep {
  abi::CpuhpState state;
  Section section;
  bool can_fail;
  Error (*startup)(PerCpu& self,
                   CpuNumber cpu);  // `self` executes, `cpu` moves; null: nothing to do
  Error (*teardown)(PerCpu& self, CpuNumber cpu);
};

// A table: where each section begins, and its end, in the order in which a CPU comes up.
struct CpuhpTable {
  const CpuhpStep* begin[kSections + 1];
  std::span<const CpuhpStep> Steps(Section section) const {
    const auto index = static_cast<size_t>(section);
    return {begin[index], begin[index + 1]};
  }
};

// The steps of plain bring-up; those with threads and RCU; and those to which a machine's drivers
// have added steps that wait for grace periods (KernelKnobs::hotplug_steps).
extern const CpuhpTable kPlainSteps;
extern const CpuhpTable kServiceSteps;
const CpuhpTable& PluggedSteps(abi::HotplugSteps steps);

// The state that a CPU is in when nothing of the section has been done.
constexpr abi::CpuhpState StateBelow(Section section) {
  switch (section) {
    case Section::kPrepare:
      return abi::CpuhpState::kOffline;
    case Section::kStarting:
      return abi::CpuhpState::kBringupCpu;
    case Section::kTeardown:
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
