#include "guest/kernel/hotplug/step_calls.h"

#include "guest/kernel/boot_passes.h"
#include "guest/kernel/hotplug/control_wait.h"
#include "guest/kernel/hotplug/numa.h"
#include "guest/kernel/hotplug/state.h"
#include "guest/kernel/sched/smp_call.h"

namespace sipi {
namespace {

using abi::SyncState;
using abi::TraceEvent;

uint16_t Traced(CpuNumber cpu) { return static_cast<uint16_t>(cpu.value); }

// A CPU that is on its way down. Notes where it is late; the control CPU's own part goes on only
// once it is dead.
Error AwaitDead(PerCpu& self, CpuNumber cpu) {
  const auto dead = [](uint32_t sync) { return sync == static_cast<uint32_t>(SyncState::kDead); };
  bool& lost = HotplugOf(*self.kernel, cpu).lost;
  lost = !AwaitWord(self, SyncWord(*self.kernel, cpu), dead);
  if (!lost) return Error::kNone;
  TraceTimeout(*self.kernel, cpu);
  return Error::kTimeoutDead;
}

}  // namespace

Error PrepareThreads(PerCpu& self, CpuNumber cpu) {
  Kernel& kernel = *self.kernel;
  PerCpu& area = kernel.percpu(cpu);
  InitPerCpu(kernel, area, cpu);
  area.slot->parked = 0;
  area.slot->error = 0;
  SchedPrepareCpu(kernel, cpu);
  MakeHotplugThread(kernel, cpu);
  return Error::kNone;
}

// The driver's own wait: SmtApproach::kHotplugCalls does not reach it.
Error LeaveCpuidleDead(PerCpu& self, CpuNumber) {
  rcu::Synchronize(*self.kernel);
  return Error::kNone;
}

Error PrepareRcu(PerCpu& self, CpuNumber cpu) {
  rcu::PrepareCpu(*self.kernel, cpu);
  return Error::kNone;
}

Error FinishRcu(PerCpu& self, CpuNumber cpu) {
  rcu::DeadCpu(*self.kernel, cpu);
  return Error::kNone;
}

Error TakeTimers(PerCpu& self, CpuNumber cpu) {
  AdoptTimers(self, cpu);
  return Error::kNone;
}

Error CancelKicked(PerCpu& self, CpuNumber cpu) {
  Kernel& kernel = *self.kernel;
  // The AP may move on between the look and the exchange; at most through three states.
  for (uint32_t tries = 0; tries < 4; ++tries) {
    const SyncState state = SyncStateOf(kernel, cpu);
    if (state == SyncState::kDead || state == SyncState::kShouldDie) return Error::kNone;
    if (state == SyncState::kOnline) {  // it came in the last moment
      // One that comes up on its own has its thread at work by now, and is not to be cancelled.
      return kernel.slot(cpu).on_its_own != 0 ? Error::kInvalid : TeardownCpu(self, cpu);
    }
    if (!SyncTransition(kernel, cpu, state, SyncState::kShouldDie)) continue;
    WithdrawTscCheck(kernel, cpu);
    NotifyCpu(self, cpu);
    // One that never reported may never come: it parks whenever it does. One that runs is on its
    // way down now, and nothing of it may be touched before it is there.
    return state >= SyncState::kAlive ? AwaitDead(self, cpu) : Error::kNone;
  }
  return Error::kTimeoutDead;
}

Error AwaitAlive(PerCpu& self, CpuNumber cpu) {
  Kernel& kernel = *self.kernel;
  platform::Trace(TraceEvent::kWaitAliveBegin, Traced(cpu), 0);
  const bool arrived = AwaitWord(self, SyncWord(kernel, cpu), [](uint32_t sync) {
    return sync == 0 || sync > static_cast<uint32_t>(SyncState::kShouldDie);
  });
  platform::Trace(TraceEvent::kWaitAliveEnd, Traced(cpu), 0);
  if (arrived) return Error::kNone;
  TraceTimeout(kernel, cpu);
  return Error::kTimeoutAlive;
}

bool ReleaseAp(PerCpu& self, CpuNumber cpu) {
  Kernel& kernel = *self.kernel;
  const SyncState state = SyncStateOf(kernel, cpu);
  if (state > SyncState::kAlive) return true;  // by an earlier pass
  platform::Trace(TraceEvent::kRelease, Traced(cpu), 0);
  if (state != SyncState::kAlive ||
      !SyncTransition(kernel, cpu, SyncState::kAlive, SyncState::kShouldOnline))
    return false;
  NotifyCpu(self, cpu);
  return true;
}

Error ReleaseAndAwait(PerCpu& self, CpuNumber cpu) {
  Kernel& kernel = *self.kernel;
  if (!ReleaseAp(self, cpu)) return Error::kCancelled;
  const bool arrived = AwaitWord(self, SyncWord(kernel, cpu), [](uint32_t sync) {
    return sync != static_cast<uint32_t>(SyncState::kAlive) &&
           sync != static_cast<uint32_t>(SyncState::kShouldOnline);
  });
  if (!arrived) {
    TraceTimeout(kernel, cpu);
    return Error::kTimeoutOnline;
  }
  if (SyncStateOf(kernel, cpu) != SyncState::kOnline) return Error::kStepFailed;
  HotplugOf(kernel, cpu).idle_done.Wait();  // by that CPU, a few instructions from here
  return Error::kNone;
}

Error StartWithRcu(PerCpu& self, CpuNumber) {
  platform::Charge(abi::Charge::kIdentify);
  rcu::ReportCpuStarting(self);
  return Error::kNone;
}

Error RcuDying(PerCpu& self, CpuNumber) {
  rcu::DyingCpu(self);
  return Error::kNone;
}

Error StartScheduler(PerCpu& self, CpuNumber) {
  SchedStartCpu(self);
  return Error::kNone;
}

Error OpenCalls(PerCpu& self, CpuNumber) {
  OpenCallQueue(self);
  return Error::kNone;
}

Error CloseCalls(PerCpu& self, CpuNumber) {
  CloseCallQueue(self);
  return Error::kNone;
}

Error TeardownCpu(PerCpu& self, CpuNumber cpu) {
  Kernel& kernel = *self.kernel;
  const Error error = TakeCpuDead(kernel, cpu);
  if (error != Error::kNone) return error;
  return SeeDead(self, cpu);
}

Error SeeDead(PerCpu& self, CpuNumber cpu) {
  const Error error = AwaitDead(self, cpu);
  if (error != Error::kNone) return error;
  platform::Trace(TraceEvent::kDead, Traced(cpu), 0);
  rcu::MigrateCallbacks(self, cpu);
  return Error::kNone;
}

Error OnlineRcu(PerCpu& self, CpuNumber) {
  rcu::OnlineCpu(self);
  return Error::kNone;
}

Error OfflineRcu(PerCpu& self, CpuNumber) {
  rcu::OfflineCpu(self);
  return Error::kNone;
}

Error EnterCpuidle(PerCpu& self, CpuNumber) {
  rcu::Synchronize(*self.kernel);
  return Error::kNone;
}

Error Activate(PerCpu& self, CpuNumber cpu) {
  SchedActivateCpu(self);
  HotplugOf(*self.kernel, cpu).active.Store(1, std::memory_order_release);
  UpdateNuma(*self.kernel, cpu, true);
  platform::Charge(abi::Charge::kSchedDomains);
  return Error::kNone;
}

// Who placed something here by the mask is done when the grace period is over.
Error DeactivateAndWait(PerCpu& self, CpuNumber cpu) {
  HotplugOf(*self.kernel, cpu).active.Store(0, std::memory_order_release);
  SchedDeactivateCpu(self);
  HotplugSynchronize(*self.kernel);
  UpdateNuma(*self.kernel, cpu, false);
  platform::Charge(abi::Charge::kSchedDomains);
  return Error::kNone;
}

}  // namespace sipi
