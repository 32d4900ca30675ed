// Workers: a thread that does one work item after the other (Linux's kthread_worker).
#pragma once

#include "guest/kernel/sched/wait.h"

namespace sipi {

// Must lie in the machine's memory.
struct Work {
  void (*function)(Work&) = nullptr;
  platform::Atomic<uint32_t> pending{
      0};  // 1: queued. 0 when its function begins: it may come again
  Work* next = nullptr;
};

struct Worker {
  SpinLock lock;
  // Guarded by the lock.
  Work* first = nullptr;
  Work* last = nullptr;
  platform::Atomic<uint32_t> queued{0};   // items in the list
  platform::Atomic<uint64_t> running{0};  // the item whose function runs
  Thread* thread = nullptr;
  WaitQueue waiting;
  WaitQueue flushed;
};

// spec.function and spec.argument are not used. Thread context or boot.
void StartWorker(Kernel& kernel, Worker& worker, const ThreadSpec& spec);
// False: it is queued already. Any context. Its function is called on the worker's thread, and may
// free or queue the item.
bool QueueWork(Kernel& kernel, Worker& worker, Work& work);
// Returns when the item is neither queued nor running. Thread context, on another thread than the
// worker's.
void FlushWork(Kernel& kernel, Worker& worker, Work& work);

}  // namespace sipi
