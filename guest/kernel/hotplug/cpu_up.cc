// One CPU up. The control thread runs the PREPARE section, which ends with the CPU in its idle
// loop, and has the CPU's own thread run the ONLINE section.
#include "guest/kernel/hotplug/ap_idle.h"
#include "guest/kernel/hotplug/control.h"
#include "guest/kernel/hotplug/step_ops.h"

namespace sipi {

using abi::CpuhpState;

Error BringUp(Kernel& kernel, CpuNumber cpu, CpuhpState target) {
  if (HotplugOf(kernel, cpu).lost) return Error::kTimeoutDead;
  const CpuhpState from = CpuState(kernel, cpu);
  if (from >= target) return Error::kNone;
  PerCpu& self = platform::ThisCpu();
  const StepSpan prepare = kernel.hotplug->steps->Steps(Section::kPrepare);
  StepOps ops(self, cpu, Section::kPrepare);
  if (from < CpuhpState::kBringupCpu) {
    // Once kicked it may be there any moment: an earlier pass may have let it go.
    if (from < CpuhpState::kKickAp) HotplugOf(kernel, cpu).idle_done.Reset();
    const CpuhpState end = target < CpuhpState::kBringupCpu ? target : CpuhpState::kBringupCpu;
    const Error error = WalkUp(prepare, from, end, ops);
    if (error != Error::kNone || target <= CpuhpState::kBringupCpu) return error;
  }
  const Error error = AskHotplugThread(kernel, cpu, HotplugCommand::kUp, target);
  // The thread has taken the CPU back to where it began, at least to the idle loop.
  if (error == Error::kNone || from >= CpuhpState::kApOnlineIdle) return error;
  if (TakeCpuOff(self, cpu, from) != Error::kNone)
    kernel.slot(cpu).error = static_cast<uint32_t>(error);
  return error;
}

void ReachIdle(PerCpu& self) {
  Kernel& kernel = *self.kernel;
  EnterState(kernel, self.cpu, Section::kOnline, CpuhpState::kApOnlineIdle);
  if (self.slot->on_its_own != 0) {
    StartHotplugThread(kernel, self.cpu, HotplugCommand::kUp, CpuhpState::kOnline);
  } else {
    HotplugOf(kernel, self.cpu).idle_done.Complete(kernel);
  }
}

Error CpuUpLocked(Kernel& kernel, CpuNumber cpu, CpuhpState target) {
  if (cpu.value >= kernel.params->cpu_count || !CanStopAt(target)) return Error::kInvalid;
  if (!CpuBootable(kernel, cpu)) return Error::kNotBootable;
  platform::Trace(abi::TraceEvent::kHotplugBegin, static_cast<uint16_t>(cpu.value),
                  static_cast<uint32_t>(target));
  Error error;
  {
    const ControlThread control(cpu);
    error = BringUp(kernel, cpu, target);
  }
  platform::Trace(abi::TraceEvent::kHotplugEnd, static_cast<uint16_t>(cpu.value),
                  static_cast<uint32_t>(error));
  return error;
}

Error CpuUp(Kernel& kernel, CpuNumber cpu, CpuhpState target) {
  Hotplug& hotplug = *kernel.hotplug;
  platform::Trace(abi::TraceEvent::kHotplugAsked, static_cast<uint16_t>(cpu.value),
                  static_cast<uint32_t>(target));
  // Its memory node comes online first (Linux: try_online_node): a lock of its own, and where it
  // has been quiet a grace period of its own.
  hotplug.mem_lock.WriteLock();
  hotplug.mem_lock.WriteUnlock();
  hotplug.add_remove.Lock();
  CpusWriteLock(kernel);
  const Error error = CpuUpLocked(kernel, cpu, target);
  CpusWriteUnlock(kernel);
  hotplug.add_remove.Unlock();
  return error;
}

}  // namespace sipi
