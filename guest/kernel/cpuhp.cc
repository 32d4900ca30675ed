#include "guest/kernel/cpuhp.h"

#include "guest/kernel/hotplug/sections.h"

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

// What follows a step that failed. Its own startup is not undone: it failed as a whole. What is
// below it is.
void RollBack(PerCpu& self, CpuNumber cpu, const CpuhpStep& step, abi::CpuhpState below,
              Error error) {
  platform::Trace(abi::TraceEvent::kStepFailed, static_cast<uint16_t>(cpu.value),
                  static_cast<uint32_t>(step.state));
  self.kernel->slot(cpu).error = static_cast<uint32_t>(error);
  Enter(*self.kernel, cpu, step.section, below);
  CpuhpDown(self, cpu, step.section);
}

// Every AP and, for every AP, the control CPU go through this loop: few instructions, nothing
// looked up twice, and the check for an injected failure only where one was asked for.
template <bool kMayInject>
Error Up(PerCpu& self, CpuNumber cpu, Section section, abi::CpuhpState target) {
  const platform::AtomicRef<uint32_t> progress = Progress(*self.kernel, cpu, section);
  const auto from = static_cast<abi::CpuhpState>(progress.Load(std::memory_order_acquire));
  const uint32_t packed =
      abi::PackTrace(abi::TraceEvent::kCpuhpEnter, static_cast<uint16_t>(cpu.value));
  const CpuhpStep* step = kPlainSteps.begin[static_cast<size_t>(section)];
  const CpuhpStep* const end = kPlainSteps.begin[static_cast<size_t>(section) + 1];
  while (step != end && step->state <= from) ++step;
  for (; step != end && step->state <= target; ++step) {
    platform::TracePacked(packed, static_cast<uint32_t>(step->state));
    progress.Store(static_cast<uint32_t>(step->state), std::memory_order_release);
    Error error = Error::kNone;
    if (kMayInject && FailureInjected(*self.kernel, cpu, *step)) {
      error = Error::kStepFailed;
    } else if (step->startup != nullptr) {
      error = step->startup(self, cpu);
    }
    if (error != Error::kNone) {
      const bool first = step == kPlainSteps.begin[static_cast<size_t>(section)];
      RollBack(self, cpu, *step, first ? StateBelow(section) : step[-1].state, error);
      return error;
    }
  }
  return Error::kNone;
}

}  // namespace

Error CpuhpUp(PerCpu& self, CpuNumber cpu, Section section, abi::CpuhpState target) {
  if (self.kernel->plain_steps) return Up<false>(self, cpu, section, target);
  if (self.kernel->hotplug != nullptr) return SectionUp(self, cpu, section, target);
  return Up<true>(self, cpu, section, target);
}

void CpuhpDown(PerCpu& self, CpuNumber cpu, Section section) {
  Kernel& kernel = *self.kernel;
  if (kernel.hotplug != nullptr) return SectionDown(self, cpu, section);
  const std::span<const CpuhpStep> steps = kPlainSteps.Steps(section);
  const abi::CpuhpState from = CpuhpProgress(kernel, cpu, section);
  for (size_t i = steps.size(); i-- > 0;) {
    if (steps[i].state > from) continue;
    if (steps[i].teardown != nullptr) (void)steps[i].teardown(self, cpu);
    Enter(kernel, cpu, section, i == 0 ? StateBelow(section) : steps[i - 1].state);
  }
}

abi::CpuhpState CpuhpProgress(Kernel& kernel, CpuNumber cpu, Section section) {
  return static_cast<abi::CpuhpState>(
      Progress(kernel, cpu, section).Load(std::memory_order_acquire));
}

}  // namespace sipi
