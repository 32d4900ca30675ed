// Bring-up at boot by any strategy, with threads: what sequence::RunStrategy asks of the control
// thread "init". Each CPU's ONLINE section runs on its own hotplug thread.
#include "guest/kernel/boot_passes.h"
#include "guest/kernel/call.h"
#include "guest/kernel/hotplug/control.h"
#include "guest/kernel/hotplug/control_wait.h"
#include "guest/kernel/hotplug/step_calls.h"

namespace sipi {
namespace {

using abi::CpuhpState;
using abi::SyncState;
using abi::TraceEvent;
using sequence::Goal;
using sequence::Scope;

class ThreadedBoot : public BootPasses {
 public:
  explicit ThreadedBoot(PerCpu& self)
      : BootPasses(self, self.kernel->strategy.ApsRunOnTheirOwn()) {}

  void Upcoming(CpuNumber) {}

  void BringTo(CpuNumber cpu, Goal goal) {
    switch (goal) {
      case Goal::kKicked:
        return PrepareKick(cpu);
      case Goal::kAlive:
        if (UpTo(cpu, CpuhpState::kWaitInit) == Error::kNone && !ReleaseAp(self_, cpu))
          Lose(cpu, Error::kCancelled);
        return;
      case Goal::kOnline:
        (void)UpTo(cpu, CpuhpState::kOnline);
    }
  }

  void PrepareKick(CpuNumber cpu) {
    if (own_) kernel_.slot(cpu).on_its_own = 1;  // the CPU is down: nobody else looks yet
    if (UpTo(cpu, CpuhpState::kKickAp) != Error::kNone && own_) CountOut();
  }

  void WaitAllOnline(Scope) {
    (void)AwaitArrivals([this](uint32_t before) {
      const auto changed = [before](uint32_t now) { return now != before; };
      return AwaitWord(self_, kernel_.remaining.Ref(), changed);
    });
    for (uint32_t i = 0; i < kernel_.params->order_count; ++i) Settle(CpuNumber(kernel_.order[i]));
  }

 private:
  // Linux brings each CPU up with cpu_up(): the memory node's lock, then the write lock.
  Error UpTo(CpuNumber cpu, CpuhpState target) {
    const bool locks = kernel_.kernel_knobs().boot_grace_periods != 0;
    if (locks) {
      kernel_.hotplug->mem_lock.WriteLock();
      kernel_.hotplug->mem_lock.WriteUnlock();
      CpusWriteLock(kernel_);
    }
    const Error error = BringUp(kernel_, cpu, target);
    if (locks) CpusWriteUnlock(kernel_);
    if (error != Error::kNone) kernel_.slot(cpu).error = static_cast<uint32_t>(error);
    return error;
  }

  void Lose(CpuNumber cpu, Error error) {
    (void)UndoPrepare(kernel_, cpu, CpuhpState::kOffline);
    kernel_.slot(cpu).error = static_cast<uint32_t>(error);
  }

  // After a concurrent pass: a CPU that did not come, or whose own section failed, is undone.
  void Settle(CpuNumber cpu) {
    abi::CpuSlot& slot = kernel_.slot(cpu);
    const CpuhpState state = CpuState(kernel_, cpu);
    if (slot.error != 0 && state < CpuhpState::kApOnlineIdle) return;
    if (state == CpuhpState::kOnline) return;
    if (SyncStateOf(kernel_, cpu) != SyncState::kOnline && GivenUp(cpu)) return;
    if (!AwaitOwnEnd(cpu)) {
      TraceTimeout(kernel_, cpu);
      slot.error = static_cast<uint32_t>(Error::kTimeoutOnline);
      return;
    }
    if (CpuState(kernel_, cpu) == CpuhpState::kOnline) return;  // late, but there
    const Error error = TakeCpuOff(self_, cpu, CpuhpState::kOffline);
    slot.error = static_cast<uint32_t>(error == Error::kNone ? Error::kStepFailed : error);
  }

  // False: it has come online in this very moment.
  bool GivenUp(CpuNumber cpu) {
    TraceTimeout(kernel_, cpu);
    const Error reason = LateBecause(kernel_, cpu);
    const bool came = UndoPrepare(kernel_, cpu, CpuhpState::kOffline) == Error::kInvalid;
    kernel_.slot(cpu).error = came ? 0 : static_cast<uint32_t>(reason);
    return !came;
  }

  // From online on a CPU that comes up on its own is its thread's, which goes up or back to the
  // idle loop; nobody else may move it meanwhile. False: not within the bound of a handshake.
  bool AwaitOwnEnd(CpuNumber cpu) {
    abi::CpuSlot& slot = kernel_.slot(cpu);
    return AwaitWord(self_, platform::AtomicRef<uint32_t>(slot.cpuhp_state), [&slot](uint32_t own) {
      return own == static_cast<uint32_t>(CpuhpState::kOnline) ||
             (own == static_cast<uint32_t>(CpuhpState::kApOnlineIdle) && slot.error != 0);
    });
  }
};

}  // namespace

void HotplugBringUp(Kernel& kernel) {
  const ControlThread control(CpuNumber(kernel.params->cpu_count));  // none's number
  PerCpu& self = platform::ThisCpu();
  platform::Trace(TraceEvent::kSmpbootBegin, 0, 0);
  if (kernel.strategy.passes[0].means == sequence::Means::kTree) PlantTree(kernel);
  ThreadedBoot ops(self);
  sequence::RunStrategy(ops, kernel.strategy, kernel.order, kernel.params->order_count);
  if (kernel.knobs().cache_setup == abi::CacheSetup::kRendezvous)
    CallAll(self, CallFunction::kCacheSetup);
  platform::Trace(TraceEvent::kSmpbootEnd, 0, kernel.online_count.Load(std::memory_order_seq_cst));
  HotplugPlugSteps(kernel);
}

void HotplugRetry(Kernel& kernel) {
  for (uint32_t i = 0; i < kernel.params->order_count; ++i) {
    const CpuNumber cpu(kernel.order[i]);
    abi::CpuSlot& slot = kernel.slot(cpu);
    if (slot.error == 0) continue;
    platform::Trace(TraceEvent::kRetry, static_cast<uint16_t>(cpu.value), slot.error);
    slot.error = 0;
    Error error = CpuUp(kernel, cpu, CpuhpState::kOnline);
    if (ParkedMeanwhile(kernel, cpu, error)) error = CpuUp(kernel, cpu, CpuhpState::kOnline);
    if (error != Error::kNone) slot.error = static_cast<uint32_t>(error);
  }
}

}  // namespace sipi
