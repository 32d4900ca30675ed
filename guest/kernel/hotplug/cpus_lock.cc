// cpus_read_lock() and cpus_write_lock().
#include "guest/kernel/hotplug/state.h"

namespace sipi {

using abi::TraceEvent;

void CpusReadLock(Kernel& kernel) { kernel.hotplug->cpus_lock.ReadLock(); }
void CpusReadUnlock(Kernel& kernel) { kernel.hotplug->cpus_lock.ReadUnlock(); }

void CpusWriteLock(Kernel& kernel) {
  platform::Trace(TraceEvent::kCpusWriteLock, 0, 0);
  kernel.hotplug->cpus_lock.WriteLock();
  platform::Trace(TraceEvent::kCpusWriteLocked, 0, 0);
}

void CpusWriteUnlock(Kernel& kernel) {
  platform::Trace(TraceEvent::kCpusWriteUnlock, 0, 0);
  kernel.hotplug->cpus_lock.WriteUnlock();
}

}  // namespace sipi
