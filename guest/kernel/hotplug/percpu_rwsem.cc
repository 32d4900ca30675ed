#include "guest/kernel/hotplug/percpu_rwsem.h"

#include "guest/kernel/alloc.h"

namespace sipi {

void PercpuRwsem::Init(Kernel& kernel) {
  kernel_ = &kernel;
  sync_.Init(kernel);
  counts_ = AllocateArray<ReaderCount>(kernel, kernel.params->cpu_count);
}

// Preemption disabled.
platform::Atomic<uint32_t>& PercpuRwsem::Own() {
  return counts_[platform::ThisCpu().cpu.value].value;
}

// Counts itself in, then looks at the door: the writer shuts it, then looks at the counts.
// Preemption disabled.
bool PercpuRwsem::EnterSlowly() {
  Own().FetchAdd(1, std::memory_order_seq_cst);
  if (block_.Load(std::memory_order_seq_cst) == 0) return true;
  Own().FetchAdd(~0u, std::memory_order_seq_cst);
  return false;
}

bool PercpuRwsem::TryReadLock() {
  {
    const PreemptGuard guard;
    if (sync_.IsIdle()) {
      // Nobody else writes this word, and no interrupt does: it need not be locked. Whoever takes
      // the fast path away waits for this section before it looks at the counts.
      platform::Atomic<uint32_t>& own = Own();
      own.Store(own.Load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      return true;
    }
    if (EnterSlowly()) return true;
  }
  // The writer may have seen the count of a moment ago.
  empty_.WakeAll(*kernel_);
  return false;
}

void PercpuRwsem::ReadLock() {
  while (!TryReadLock()) {
    door_.Wait([this] { return block_.Load(std::memory_order_seq_cst) == 0; });
  }
}

void PercpuRwsem::ReadUnlock() {
  {
    const PreemptGuard guard;
    if (sync_.IsIdle()) {
      platform::Atomic<uint32_t>& own = Own();
      own.Store(own.Load(std::memory_order_relaxed) - 1, std::memory_order_release);
      return;
    }
    Own().FetchAdd(~0u, std::memory_order_seq_cst);
  }
  if (block_.Load(std::memory_order_seq_cst) != 0) empty_.WakeAll(*kernel_);
}

bool PercpuRwsem::NobodyInside() {
  uint32_t sum = 0;
  for (uint32_t cpu = 0; cpu < kernel_->params->cpu_count; ++cpu) {
    sum += counts_[cpu].value.Load(std::memory_order_seq_cst);
  }
  return sum == 0;
}

void PercpuRwsem::WriteLock() {
  sync_.Enter();
  writer_.Lock();
  block_.Exchange(1, std::memory_order_seq_cst);
  empty_.Wait([this] { return NobodyInside(); });
}

void PercpuRwsem::WriteUnlock() {
  block_.Store(0, std::memory_order_seq_cst);
  door_.WakeAll(*kernel_);
  writer_.Unlock();
  sync_.Exit();
}

}  // namespace sipi
