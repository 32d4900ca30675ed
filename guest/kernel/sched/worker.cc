#include "guest/kernel/sched/worker.h"

namespace sipi {
namespace {

// The next item, which is on its way to running from here on; null: there is none.
Work* Take(Kernel& kernel, Worker& worker) {
  IrqSpinGuard guard(kernel, worker.lock);
  Work* const work = worker.first;
  if (work == nullptr) return nullptr;
  worker.first = work->next;
  if (worker.first == nullptr) worker.last = nullptr;
  worker.queued.FetchAdd(~0u, std::memory_order_relaxed);
  worker.running.Store(reinterpret_cast<uint64_t>(work), std::memory_order_relaxed);
  work->pending.Store(0, std::memory_order_release);
  return work;
}

void WorkerMain(void* argument) {
  Worker& worker = *static_cast<Worker*>(argument);
  Kernel& kernel = *CurrentThread()->kernel;
  for (;;) {
    worker.waiting.Wait([&] { return worker.queued.Load(std::memory_order_acquire) != 0; });
    Work* const work = Take(kernel, worker);
    if (work == nullptr) continue;
    work->function(*work);
    worker.running.Store(0, std::memory_order_seq_cst);
    worker.flushed.WakeAll(kernel);
    CondResched();
  }
}

}  // namespace

void StartWorker(Kernel& kernel, Worker& worker, const ThreadSpec& spec) {
  ThreadSpec its = spec;
  its.function = WorkerMain;
  its.argument = &worker;
  its.asleep = true;
  worker.thread = &SpawnThread(kernel, its);
  WakeUp(*worker.thread);
}

bool QueueWork(Kernel& kernel, Worker& worker, Work& work) {
  if (work.pending.Exchange(1, std::memory_order_seq_cst) != 0) return false;
  {
    IrqSpinGuard guard(kernel, worker.lock);
    work.next = nullptr;
    (worker.last != nullptr ? worker.last->next : worker.first) = &work;
    worker.last = &work;
    worker.queued.FetchAdd(1, std::memory_order_release);
  }
  (void)worker.waiting.WakeOne(kernel);
  return true;
}

void FlushWork(Kernel&, Worker& worker, Work& work) {
  const auto at = reinterpret_cast<uint64_t>(&work);
  // Running is stored before pending is cleared, so that one of the two shows it.
  worker.flushed.Wait([&] {
    return work.pending.Load(std::memory_order_seq_cst) == 0 &&
           worker.running.Load(std::memory_order_seq_cst) != at;
  });
}

}  // namespace sipi
