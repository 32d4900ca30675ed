// One CPU down. Its own thread undoes the ONLINE section; then it is stopped, alone, and undoes its
// STARTING section; its idle loop reports it dead; then the control thread undoes PREPARE.
#include "guest/kernel/call.h"
#include "guest/kernel/handshake.h"
#include "guest/kernel/hotplug/ap_idle.h"
#include "guest/kernel/hotplug/control.h"
#include "guest/kernel/hotplug/step_calls.h"
#include "guest/kernel/hotplug/step_ops.h"
#include "guest/kernel/sched/smp_call.h"

namespace sipi {
namespace {

using abi::CpuhpState;
using abi::SyncState;

// On the dying CPU's stopper thread.
void DieOnStopper(void* argument) {
  const IrqGuard off;
  auto& self = *static_cast<PerCpu*>(argument);
  Kernel& kernel = *self.kernel;
  StepOps ops(self, self.cpu, Section::kStarting);
  ops.Enter(CpuhpState::kApOnline);
  // Steps of this section cannot fail.
  (void)WalkDown(kernel.hotplug->steps->Steps(Section::kStarting), CpuhpState::kApOnline,
                 CpuhpState::kBringupCpu, ops);
  SIPI_ASSERT(SyncTransition(kernel, self.cpu, SyncState::kOnline, SyncState::kShouldDie));
}

}  // namespace

Error TakeCpuDead(Kernel& kernel, CpuNumber cpu) {
  // Linux stops all CPUs here. In this kernel nobody relies on that: call lists close by the
  // exchange that empties them, run queues under their lock, and grace periods look at leaves, not
  // at the online mask. So only the CPU itself is stopped: its stopper thread comes before all
  // others.
  StopOneCpu(kernel, cpu, DieOnStopper, &kernel.percpu(cpu));
  return SyncStateOf(kernel, cpu) <= SyncState::kShouldDie ? Error::kNone : Error::kTimeoutDead;
}

void IdleDead(PerCpu& self) {
  Kernel& kernel = *self.kernel;
  rcu::ReportCpuDead(self);
  platform::Trace(abi::TraceEvent::kParked, 0, 0);
  self.slot->parked = 1;
  AnswerOnTheWayDown(self);
  (void)SyncTransition(kernel, self.cpu, SyncState::kShouldDie, SyncState::kDead);
  platform::HaltForever();
}

Error TakeCpuOff(PerCpu& self, CpuNumber cpu, CpuhpState target) {
  Kernel& kernel = *self.kernel;
  const CpuhpTable& table = *kernel.hotplug->steps;
  for (const CpuhpStep& step : table.Steps(Section::kTeardown)) {
    StepOps ops(self, cpu, Section::kTeardown);
    const Error error = ops.Teardown(step);
    if (error == Error::kNone) continue;
    ops.Failed(step, error);
    return error;
  }
  StepOps ops(self, cpu, Section::kPrepare);
  return WalkDown(table.Steps(Section::kPrepare), CpuState(kernel, cpu), target, ops);
}

Error UndoPrepare(Kernel& kernel, CpuNumber cpu, CpuhpState target) {
  PerCpu& self = platform::ThisCpu();
  // An earlier operation's end, which nobody has seen.
  if (HotplugOf(kernel, cpu).lost && SeeDead(self, cpu) != Error::kNone) return Error::kTimeoutDead;
  StepOps ops(self, cpu, Section::kPrepare);
  return WalkDown(kernel.hotplug->steps->Steps(Section::kPrepare),
                  CpuhpProgress(kernel, cpu, Section::kPrepare), target, ops);
}

Error TakeDown(Kernel& kernel, CpuNumber cpu, CpuhpState target) {
  const CpuhpState from = CpuState(kernel, cpu);
  if (from <= target) return Error::kNone;
  if (from <= CpuhpState::kBringupCpu) return UndoPrepare(kernel, cpu, target);
  HotplugOf(kernel, cpu).dying.Store(1, std::memory_order_release);
  const bool off = target < CpuhpState::kTeardownCpu;
  Error error =
      AskHotplugThread(kernel, cpu, HotplugCommand::kDown, off ? CpuhpState::kTeardownCpu : target);
  if (error == Error::kNone && off) {
    error = TakeCpuOff(platform::ThisCpu(), cpu, target);
    // Not stopped at all: it is where its thread left it, and goes back.
    if (error != Error::kNone && SyncStateOf(kernel, cpu) == SyncState::kOnline)
      SIPI_ASSERT(AskHotplugThread(kernel, cpu, HotplugCommand::kUp, from) == Error::kNone);
  }
  HotplugOf(kernel, cpu).dying.Store(0, std::memory_order_release);
  return error;
}

Error CpuDownLocked(Kernel& kernel, CpuNumber cpu, CpuhpState target) {
  // The boot CPU stays: it has the firmware's interrupts.
  if (cpu == kBootCpu || cpu.value >= kernel.params->cpu_count || !CanStopAt(target))
    return Error::kInvalid;
  platform::Trace(abi::TraceEvent::kHotplugBegin, static_cast<uint16_t>(cpu.value),
                  static_cast<uint32_t>(target));
  Error error;
  {
    const ControlThread control(cpu);
    error = TakeDown(kernel, cpu, target);
  }
  platform::Trace(abi::TraceEvent::kHotplugEnd, static_cast<uint16_t>(cpu.value),
                  static_cast<uint32_t>(error));
  return error;
}

Error CpuDown(Kernel& kernel, CpuNumber cpu, CpuhpState target) {
  Hotplug& hotplug = *kernel.hotplug;
  platform::Trace(abi::TraceEvent::kHotplugAsked, static_cast<uint16_t>(cpu.value),
                  static_cast<uint32_t>(target));
  hotplug.add_remove.Lock();
  CpusWriteLock(kernel);
  const Error error = CpuDownLocked(kernel, cpu, target);
  CpusWriteUnlock(kernel);
  hotplug.add_remove.Unlock();
  return error;
}

}  // namespace sipi
