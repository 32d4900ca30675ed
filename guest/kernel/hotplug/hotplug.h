// CPU hotplug once the kernel runs: one CPU down or up, the lock that keeps the set of CPUs still,
// and SMT control.
#pragma once

#include "guest/kernel/cpuhp.h"
#include "guest/kernel/sched/thread.h"

namespace sipi {

// Keeps every CPU where it is. Readers: thread context, may nest not at all, may sleep. The lock is a
// per-CPU reader-writer semaphore on rcu_sync (rcu_sync.h).
void CpusReadLock(Kernel& kernel);
void CpusReadUnlock(Kernel& kernel);
void CpusWriteLock(Kernel& kernel);
void CpusWriteUnlock(Kernel& kernel);

// Brings one CPU down to `target` (offline) or up to it (online), with the write lock taken around.
// On failure all that was done is undone, the CPU is as it was, and the error says why. Thread context
// on any CPU but `cpu`; the caller is the control CPU for the time of the call.
Error CpuDown(Kernel& kernel, CpuNumber cpu, abi::CpuhpState target);
Error CpuUp(Kernel& kernel, CpuNumber cpu, abi::CpuhpState target);
// The same for callers that hold the write lock.
Error CpuDownLocked(Kernel& kernel, CpuNumber cpu, abi::CpuhpState target);
Error CpuUpLocked(Kernel& kernel, CpuNumber cpu, abi::CpuhpState target);

// SMT control: threads per core that may be online. Takes CPUs above down, or brings CPUs below up,
// by the approach. What was done stays in the timeline; false: some CPU failed, the others went on.
bool SmtSwitch(Kernel& kernel, uint32_t threads, abi::SmtApproach approach);

}  // namespace sipi
