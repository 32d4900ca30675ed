// A reader-writer semaphore whose readers touch only a word of their own CPU, as long as nobody
// writes (Linux: kernel/locking/percpu-rwsem.c). A writer first takes the readers' fast path away,
// which costs a grace period where rcu_sync is idle, then shuts the door and waits until all
// readers have left.
//
// The count of one CPU says nothing: a reader may leave on another CPU than it came in. The sum
// over all CPUs does, once nobody can come in: a reader that finds the door shut takes itself back
// on the very word that it counted itself into.
#pragma once

#include "guest/kernel/hotplug/rcu_sync.h"

namespace sipi {

// Lies in machine memory.
class PercpuRwsem {
 public:
  void Init(Kernel& kernel);

  // Thread context, preemptible. Readers may sleep inside; neither side nests.
  void ReadLock();
  void ReadUnlock();
  // False, and nothing is held, where a writer is inside or on its way in. Any thread context.
  bool TryReadLock();
  void WriteLock();
  void WriteUnlock();

  RcuSync& sync() { return sync_; }

 private:
  struct alignas(64) ReaderCount {
    platform::Atomic<uint32_t> value{0};
  };

  platform::Atomic<uint32_t>& Own();
  bool EnterSlowly();
  bool NobodyInside();

  RcuSync sync_;
  Kernel* kernel_ = nullptr;
  ReaderCount* counts_ = nullptr;        // by CPU
  platform::Atomic<uint32_t> block_{0};  // 1: the door is shut
  WaitQueue door_;                       // readers that wait for it to open
  WaitQueue empty_;                      // the writer that waits for readers to leave
  Mutex writer_;
};

}  // namespace sipi
