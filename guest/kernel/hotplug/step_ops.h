// What a walk (walk.h) does with the kernel's steps: enters states in slot and timeline, fails
// where a test or a fault asks for it, runs the callbacks.
#pragma once

#include "guest/kernel/hotplug/state.h"
#include "guest/kernel/hotplug/walk.h"

namespace sipi {

class StepOps {
 public:
  // `self` executes and stays on its CPU for as long.
  StepOps(PerCpu& self, CpuNumber cpu, Section section)
      : self_(self), kernel_(*self.kernel), cpu_(cpu), section_(section) {}

  void Enter(abi::CpuhpState state) { EnterState(kernel_, cpu_, section_, state); }

  Error Startup(const CpuhpStep& step) {
    if (HotplugOf(kernel_, cpu_).lost) return Error::kTimeoutDead;
    if (step.startup == nullptr) return Error::kNone;
    if (FailsNow(step)) return Error::kStepFailed;
    return step.startup(self_, cpu_);
  }

  Error Teardown(const CpuhpStep& step) {
    if (step.teardown == nullptr) return Error::kNone;
    if (FailsNow(step)) return Error::kStepFailed;
    return step.teardown(self_, cpu_);
  }

  void Failed(const CpuhpStep& step, Error error) {
    platform::Trace(abi::TraceEvent::kStepFailed, static_cast<uint16_t>(cpu_.value),
                    static_cast<uint32_t>(step.state));
    kernel_.slot(cpu_).error = static_cast<uint32_t>(error);
    undoing_ = true;
  }

  // Of a CPU that is lost nothing more can be undone.
  void UndoFailed(const CpuhpStep&, Error) {
    if (!HotplugOf(kernel_, cpu_).lost) SIPI_PANIC("a hotplug step failed while undone");
  }

 private:
  // A rollback does not fail: what is armed stays armed for the next try.
  bool FailsNow(const CpuhpStep& step) {
    CpuHotplug& hotplug = HotplugOf(kernel_, cpu_);
    if (undoing_ || !step.can_fail || hotplug.fail != static_cast<uint32_t>(step.state))
      return false;
    if (!hotplug.fail_always) hotplug.fail = CpuHotplug::kNoState;
    return true;
  }

  PerCpu& self_;
  Kernel& kernel_;
  const CpuNumber cpu_;
  const Section section_;
  bool undoing_ = false;
};

}  // namespace sipi
