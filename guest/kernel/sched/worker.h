// Workers: a thread that does one work item after the other (Linux's kthread_worker).
#pragma once

#include "guest/kernel/sched/wait.h"

namespace sipi {

struct Work {
  void (*function)(Work&) = nullptr;
  platform::Atomic<uint32_t> pending{0};  // 1: queued or running
  Work* next = nullptr;
};

struct Worker {
  SpinLock lock;
  Work* first = nullptr;
  Work* last = nullptr;
  Thread* thread = nullptr;
  WaitQueue waiting;
  WaitQueue flushed;
};

void StartWorker(Kernel& kernel, Worker& worker, const ThreadSpec& spec);  // spec.function unused
// False: it is queued already. Any context.
bool QueueWork(Kernel& kernel, Worker& worker, Work& work);
// Returns when the item is neither queued nor running. Thread context.
void FlushWork(Kernel& kernel, Worker& worker, Work& work);

}  // namespace sipi
