// CPU hotplug once the kernel runs: one CPU down or up, the lock that keeps the set of CPUs still,
// and SMT control.
#pragma once

#include "guest/kernel/cpuhp.h"
#include "guest/kernel/sched/thread.h"

namespace sipi {

// Keeps every CPU where it is. Readers: thread context, may nest not at all, may sleep. The lock is
// a per-CPU reader-writer semaphore on rcu_sync (rcu_sync.h).
void CpusReadLock(Kernel& kernel);
void CpusReadUnlock(Kernel& kernel);
void CpusWriteLock(Kernel& kernel);
void CpusWriteUnlock(Kernel& kernel);

// Brings one CPU down to `target` (offline) or up to it (online), with the write lock taken around.
// On failure all that was done is undone, the CPU is as it was, and the error says why. Thread
// context on any CPU but `cpu`; the caller is the control CPU for the time of the call.
Error CpuDown(Kernel& kernel, CpuNumber cpu, abi::CpuhpState target);
Error CpuUp(Kernel& kernel, CpuNumber cpu, abi::CpuhpState target);
// The same for callers that hold the write lock.
Error CpuDownLocked(Kernel& kernel, CpuNumber cpu, abi::CpuhpState target);
Error CpuUpLocked(Kernel& kernel, CpuNumber cpu, abi::CpuhpState target);

// Masks. Present: all CPUs of the table. Any context.
inline bool CpuPresent(Kernel& kernel, CpuNumber cpu) {
  return cpu.value < kernel.params->cpu_count;
}
bool CpuOnline(Kernel& kernel, CpuNumber cpu);
bool CpuActive(Kernel& kernel, CpuNumber cpu);
bool CpuDying(Kernel& kernel, CpuNumber cpu);

// Has the step of that state fail the next time that `cpu` comes by it, on the way up or down
// (Linux: hotplug/fail). kInvalid: there is no such step; it runs with interrupts off, from where
// there is no way back; or it would be undone only after the CPU, which is up, is dead. No
// operation is under way.
Error InjectFailure(Kernel& kernel, CpuNumber cpu, abi::CpuhpState state);
void ClearFailure(Kernel& kernel, CpuNumber cpu);

// SMT control: threads per core that may be online. Takes CPUs above down, or brings CPUs below up,
// by the approach. What was done stays in the timeline; false: some CPU failed, the others went on.
bool SmtSwitch(Kernel& kernel, uint32_t threads, abi::SmtApproach approach);
enum class SmtState : uint32_t { kNotSupported, kOff, kOn };
SmtState SmtControl(Kernel& kernel);
// May this CPU come online, as SMT control stands?
bool CpuBootable(Kernel& kernel, CpuNumber cpu);
// Nobody holds the write lock, and readers have their fast path: an operation from here on waits
// for all the grace periods that the first one of a row does. Any context.
bool HotplugSettled(Kernel& kernel);

// --- Set-up. HotplugInit: boot CPU, before any other runs. HotplugBringUp: BringUpSecondaryCpus
// with threads, on the thread "init". HotplugPlugSteps: when all are up, drivers add their steps.
void HotplugInit(Kernel& kernel);
void HotplugBringUp(Kernel& kernel);
// Brings up once more, one by one, the CPUs of the order that have failed. Thread "init",
// afterwards.
void HotplugRetry(Kernel& kernel);
void HotplugPlugSteps(Kernel& kernel);

}  // namespace sipi
