// SMT control: how many threads of each core may be online, and the switch between two settings by
// each of the approaches that the series "expedite RCU when toggling SMT" weighs.
#include "guest/kernel/hotplug/control.h"

namespace sipi {
namespace {

using abi::CpuhpState;
using abi::SmtApproach;
using abi::TraceEvent;

bool CoreIsOnline(Kernel& kernel, CpuNumber cpu) {
  const uint32_t core = kernel.entry(cpu).core;
  return platform::AtomicRef<uint32_t>(kernel.slots[core].core_cpus)
             .Load(std::memory_order_relaxed) != 0;
}

// What surrounds the whole switch, and each CPU's operation.
class Approach {
 public:
  Approach(Kernel& kernel, SmtApproach approach) : kernel_(kernel), approach_(approach) { Begin(); }
  ~Approach() { End(); }
  Approach(const Approach&) = delete;
  Approach& operator=(const Approach&) = delete;

  Error Move(CpuNumber cpu, bool up) {
    const bool locks = approach_ != SmtApproach::kWriteLock;
    if (approach_ == SmtApproach::kPerCpu) rcu::ExpediteGp(kernel_);
    if (locks) CpusWriteLock(kernel_);
    const Error error = up ? CpuUpLocked(kernel_, cpu, CpuhpState::kOnline)
                           : CpuDownLocked(kernel_, cpu, CpuhpState::kOffline);
    if (locks) CpusWriteUnlock(kernel_);
    if (approach_ == SmtApproach::kPerCpu) rcu::UnexpediteGp(kernel_);
    return error;
  }

 private:
  void Begin() {
    switch (approach_) {
      case SmtApproach::kNone:
      case SmtApproach::kPerCpu:
        return;
      case SmtApproach::kExpedite:
        return rcu::ExpediteGp(kernel_);
      case SmtApproach::kHotplugCalls:
        return kernel_.hotplug->expedite_own_calls.Store(1, std::memory_order_seq_cst);
      case SmtApproach::kWriteLock:
        return CpusWriteLock(kernel_);
      case SmtApproach::kRcuSync:
        return kernel_.hotplug->cpus_lock.sync().Enter();
      case SmtApproach::kWakeFromGp:
        woke_ = rcu::SetNormalWakeFromGp(kernel_, true);
    }
  }

  void End() {
    switch (approach_) {
      case SmtApproach::kNone:
      case SmtApproach::kPerCpu:
        return;
      case SmtApproach::kExpedite:
        return rcu::UnexpediteGp(kernel_);
      case SmtApproach::kHotplugCalls:
        return kernel_.hotplug->expedite_own_calls.Store(0, std::memory_order_seq_cst);
      case SmtApproach::kWriteLock:
        return CpusWriteUnlock(kernel_);
      case SmtApproach::kRcuSync:
        return kernel_.hotplug->cpus_lock.sync().Exit();
      case SmtApproach::kWakeFromGp:
        (void)rcu::SetNormalWakeFromGp(kernel_, woke_);
    }
  }

  Kernel& kernel_;
  const SmtApproach approach_;
  bool woke_ = false;
};

// Down what is above, up what is below; a core that is off as a whole stays off.
uint32_t Switch(Kernel& kernel, uint32_t threads, Approach& approach) {
  uint32_t failed = 0;
  for (uint32_t i = 0; i < kernel.params->cpu_count; ++i) {
    const CpuNumber cpu(i);
    const bool allowed = kernel.entry(cpu).thread < threads;
    if (CpuOnline(kernel, cpu) == allowed) continue;
    if (allowed && !CoreIsOnline(kernel, cpu)) continue;
    failed += approach.Move(cpu, allowed) == Error::kNone ? 0u : 1u;
  }
  return failed;
}

}  // namespace

bool SmtSwitch(Kernel& kernel, uint32_t threads, SmtApproach approach) {
  Hotplug& hotplug = *kernel.hotplug;
  if (threads == 0) threads = 1;
  if (threads > hotplug.max_threads) threads = hotplug.max_threads;
  hotplug.add_remove.Lock();
  const auto traced = static_cast<uint16_t>(threads);
  platform::Trace(TraceEvent::kSmtBegin, traced, static_cast<uint32_t>(approach));
  hotplug.allowed_threads = threads;
  uint32_t failed;
  {
    Approach around(kernel, approach);
    failed = Switch(kernel, threads, around);
  }
  platform::Trace(TraceEvent::kSmtEnd, traced, failed);
  hotplug.add_remove.Unlock();
  return failed == 0;
}

SmtState SmtControl(Kernel& kernel) {
  const Hotplug& hotplug = *kernel.hotplug;
  if (hotplug.max_threads == 1) return SmtState::kNotSupported;
  return hotplug.allowed_threads == 1 ? SmtState::kOff : SmtState::kOn;
}

bool CpuBootable(Kernel& kernel, CpuNumber cpu) {
  return kernel.entry(cpu).thread < kernel.hotplug->allowed_threads;
}

}  // namespace sipi
