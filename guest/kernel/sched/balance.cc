// Threads that go to another CPU: because they are bound to it, because theirs goes offline, or
// because they wait while others have nothing to do.
#include "guest/kernel/sched/run_queue.h"

namespace sipi {
namespace {

// The first of those that wait here and may go elsewhere, taken off the queue; or null. `leaving`:
// every thread that is not the CPU's own must go. The lock is held.
Thread* TakeMovable(RunQueue& queue, bool leaving) {
  for (ThreadList& list : queue.waiting) {
    for (Thread* at = list.first; at != nullptr; at = at->next) {
      if (leaving ? at->per_cpu : !at->movable) continue;
      Unlink(queue, *at);
      at->on_queue = kMoving;
      return at;
    }
  }
  return nullptr;
}

Thread* TakeMovableFrom(Kernel& kernel, RunQueue& queue, bool leaving) {
  queue.lock.Lock(kernel);
  Thread* const thread = TakeMovable(queue, leaving);
  queue.lock.Unlock();
  return thread;
}

}  // namespace

bool PullThread(PerCpu& self) {
  Kernel& kernel = *self.kernel;
  if (!self.run_queue->active) return false;
  if (kernel.scheduler->movable.Load(std::memory_order_relaxed) == 0) return false;
  const uint32_t count = kernel.params->cpu_count;
  for (uint32_t i = 1; i < count; ++i) {
    RunQueue& queue = QueueOf(kernel, (self.cpu.value + i) % count);
    if (queue.movable.Load(std::memory_order_relaxed) == 0) continue;
    Thread* const thread = TakeMovableFrom(kernel, queue, /*leaving=*/false);
    if (thread == nullptr) continue;
    // This CPU counts as idle, and is the first to be asked.
    thread->cpu.Store(self.cpu.value, std::memory_order_relaxed);
    PlaceThread(*thread);
    return true;
  }
  return false;
}

void PushThread(PerCpu& self) {
  Kernel& kernel = *self.kernel;
  RunQueue& queue = *self.run_queue;
  if (queue.movable.Load(std::memory_order_relaxed) == 0) return;
  if (FindIdleCpu(kernel, self.cpu.value) == Thread::kAnyCpu) return;
  Thread* const thread = TakeMovableFrom(kernel, queue, /*leaving=*/false);
  if (thread != nullptr) PlaceThread(*thread);
}

bool SetAffinity(Thread& thread, uint32_t cpu) {
  Kernel& kernel = *thread.kernel;
  SIPI_ASSERT(!thread.per_cpu);
  IrqGuard irq;
  if (cpu != Thread::kAnyCpu) {
    RunQueue& target = QueueOf(kernel, cpu);
    target.lock.Lock(kernel);
    const bool takes = target.active;
    target.lock.Unlock();
    if (!takes) return false;
  }
  thread.affinity.Exchange(cpu, std::memory_order_seq_cst);
  if (&thread == CurrentThread()) {
    SIPI_ASSERT(thread.preempt_count == 0);
    if (cpu != Thread::kAnyCpu && platform::ThisCpu().cpu.value != cpu)
      SwitchThread(/*preempted=*/true);
    return true;
  }
  const uint32_t at = thread.cpu.Load(std::memory_order_acquire);
  if (cpu == Thread::kAnyCpu || at == cpu) return true;
  RunQueue& queue = QueueOf(kernel, at);
  queue.lock.Lock(kernel);
  const bool here = thread.cpu.Load(std::memory_order_relaxed) == at && thread.on_queue == kOnQueue;
  const bool waits = here && queue.current != &thread;
  if (waits) {
    Unlink(queue, thread);
    thread.on_queue = kMoving;
  }
  queue.lock.Unlock();
  if (waits) PlaceThread(thread);
  if (here && !waits) ReschedCpu(kernel, CpuNumber(at));
  return true;
}

void SchedActivateCpu(PerCpu& self) {
  RunQueue& queue = *self.run_queue;
  IrqSpinGuard guard(*self.kernel, queue.lock);
  queue.active = true;
  if (queue.current == queue.idle) queue.idles.Store(1, std::memory_order_relaxed);
}

void SchedDeactivateCpu(PerCpu& self) {
  Kernel& kernel = *self.kernel;
  RunQueue& queue = *self.run_queue;
  IrqGuard irq;
  queue.lock.Lock(kernel);
  queue.active = false;
  queue.lock.Unlock();
  queue.idles.Store(0, std::memory_order_seq_cst);
  // Bounded: none comes any more.
  while (Thread* const thread = TakeMovableFrom(kernel, queue, /*leaving=*/true)) {
    PlaceThread(*thread);
  }
}

}  // namespace sipi
