#include "guest/kernel/cpuhp.h"

namespace sipi {
namespace {

// Where the executor keeps how far a CPU has come. The control CPU's own section has a word of its
// own: with kick+wait an AP is already in its STARTING section while the control CPU has PREPARE
// steps left.
platform::AtomicRef<uint32_t> Progress(Kernel& kernel, CpuNumber cpu, Section section) {
  abi::CpuSlot& slot = kernel.slot(cpu);
  return platform::AtomicRef<uint32_t>(section == Section::kPrepare ? slot.prepare_state
                                                                    : slot.cpuhp_state);
}

void Enter(Kernel& kernel, CpuNumber cpu, Section section, abi::CpuhpState state) {
  platform::Trace(abi::TraceEvent::kCpuhpEnter, static_cast<uint16_t>(cpu.value),
                  static_cast<uint32_t>(state));
  Progress(kernel, cpu, section).Store(static_cast<uint32_t>(state), std::memory_order_release);
}

bool FailureInjected(Kernel& kernel, CpuNumber cpu, const CpuhpStep& step) {
  return step.can_fail && kernel.FaultIs(abi::Fault::kFailStep, cpu) &&
         kernel.params->fault.value == static_cast<uint64_t>(step.state);
}

Error Startup(PerCpu& self, CpuNumber cpu, const CpuhpStep& step) {
  Enter(*self.kernel, cpu, step.section, step.state);
  if (FailureInjected(*self.kernel, cpu, step)) return Error::kStepFailed;
  return step.startup == nullptr ? Error::kNone : step.startup(self, cpu);
}

}  // namespace

Error CpuhpUp(PerCpu& self, CpuNumber cpu, Section section, abi::CpuhpState target) {
  Kernel& kernel = *self.kernel;
  const abi::CpuhpState from = CpuhpProgress(kernel, cpu, section);
  abi::CpuhpState below = from;
  for (const CpuhpStep& step : CpuhpSteps(section)) {
    if (step.state <= from) continue;
    if (step.state > target) break;
    const Error error = Startup(self, cpu, step);
    if (error != Error::kNone) {
      // The failed step's own startup is not undone: it failed as a whole. What is below it is.
      platform::Trace(abi::TraceEvent::kStepFailed, static_cast<uint16_t>(cpu.value),
                      static_cast<uint32_t>(step.state));
      kernel.slot(cpu).error = static_cast<uint32_t>(error);
      Enter(kernel, cpu, section, below);
      CpuhpDown(self, cpu, section);
      return error;
    }
    below = step.state;
  }
  return Error::kNone;
}

void CpuhpDown(PerCpu& self, CpuNumber cpu, Section section) {
  Kernel& kernel = *self.kernel;
  const std::span<const CpuhpStep> steps = CpuhpSteps(section);
  const abi::CpuhpState from = CpuhpProgress(kernel, cpu, section);
  for (size_t i = steps.size(); i-- > 0;) {
    if (steps[i].state > from) continue;
    if (steps[i].teardown != nullptr) steps[i].teardown(self, cpu);
    Enter(kernel, cpu, section, i == 0 ? StateBelow(section) : steps[i - 1].state);
  }
}

abi::CpuhpState CpuhpProgress(Kernel& kernel, CpuNumber cpu, Section section) {
  return static_cast<abi::CpuhpState>(
      Progress(kernel, cpu, section).Load(std::memory_order_acquire));
}

}  // namespace sipi
