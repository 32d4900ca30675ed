// A call_rcu worker's loop: bind, take the batch, wait for a grace period, run it, sleep for the
// next. The order and the 10 ms are liburcu's (call_rcu_thread in urcu-call-rcu-impl.h): a batch
// gathers while the worker sleeps, so one grace period serves many callbacks.
#include "guest/kernel/callrcu/worker.h"
#include "guest/kernel/rcu/rcu.h"
#include "guest/kernel/sched/time.h"

namespace sipi::callrcu {
namespace {

uint16_t Target(const Worker& worker) { return static_cast<uint16_t>(worker.cpu.value); }

// Where the thread runs; it may be elsewhere by the time that the caller looks.
CpuNumber Whereabouts() {
  PreemptGuard still;
  return platform::ThisCpu().cpu;
}

// Binds the thread to its CPU. Where that is offline it stays free and tries again another time.
void Pin(Worker& worker) {
  if (!SetAffinity(*worker.thread, worker.cpu.value)) return;
  worker.pinned = true;
  worker.pinned_us = (platform::NowNs() - worker.started_ns) / 1000 + 1;
  platform::Trace(abi::TraceEvent::kWorkerPinned, Target(worker),
                  static_cast<uint32_t>(worker.pinned_us));
}

// `work`: the worker has found its queue not empty.
void MayPin(Worker& worker, bool work) {
  if (worker.pinned) return;
  switch (worker.workers->kernel->kernel_knobs().worker_pinning) {
    case abi::WorkerPinning::kLazy:
      // Looks every so many loops, and leaves a thread alone that is in the right place.
      if (!work && ++worker.loops % kLazyPinningLoops == 0 && Whereabouts() != worker.cpu) {
        Pin(worker);
      }
      return;
    case abi::WorkerPinning::kAtStart:
      return Pin(worker);
    case abi::WorkerPinning::kAtFirstWork:
      if (work) Pin(worker);
      return;
  }
}

// Everything that is queued, as a chain; null: nothing.
rcu::Head* Take(Worker& worker) {
  SpinGuard guard(*worker.workers->kernel, worker.lock);
  rcu::Head* const batch = worker.first;
  worker.first = nullptr;
  worker.last = nullptr;
  return batch;
}

void RunBatch(Worker& worker, rcu::Head* batch) {
  const CpuNumber here = Whereabouts();
  if (here != worker.cpu) ++worker.ran_away;
  if (here != worker.cpu && here.value != worker.last_cpu) {
    platform::Trace(abi::TraceEvent::kWorkerRanAway, Target(worker), here.value);
  }
  worker.last_cpu = here.value;
  uint32_t count = 0;
  while (batch != nullptr) {
    rcu::Head& head = *batch;
    batch = head.next;  // the callback may free it
    head.function(head);
    ++count;
  }
  worker.run += count;
  ++worker.batches;
  platform::Trace(abi::TraceEvent::kCallbacks, Target(worker), count);
}

// Sleeps until something is queued, unless it is already.
void AwaitWork(Worker& worker) {
  {
    SpinGuard guard(*worker.workers->kernel, worker.lock);
    if (worker.first != nullptr || worker.stop.Load(std::memory_order_relaxed) != 0) return;
    worker.asked.Store(0, std::memory_order_seq_cst);
    worker.sleeping = true;
  }
  worker.waiting.Wait([&worker] { return worker.asked.Load(std::memory_order_seq_cst) != 0; });
}

}  // namespace

bool Enqueue(Worker& worker, rcu::Head& head) {
  head.next = nullptr;
  SpinGuard guard(*worker.workers->kernel, worker.lock);
  (worker.last != nullptr ? worker.last->next : worker.first) = &head;
  worker.last = &head;
  ++worker.queued;
  const bool sleeping = worker.sleeping;
  worker.sleeping = false;
  return sleeping;
}

void WakeWorker(Worker& worker) {
  worker.asked.Store(1, std::memory_order_seq_cst);
  worker.waiting.WakeAll(*worker.workers->kernel);
}

void RunWorker(Worker& worker) {
  Kernel& kernel = *worker.workers->kernel;
  worker.thread = CurrentThread();
  worker.started_ns = platform::NowNs();
  for (;;) {
    MayPin(worker, false);
    // Before the queue: whatever was queued before the stop is seen below.
    const bool stop = worker.stop.Load(std::memory_order_seq_cst) != 0;
    if (rcu::Head* batch = Take(worker); batch != nullptr) {
      MayPin(worker, true);
      rcu::Synchronize(kernel);
      RunBatch(worker, batch);
    } else if (stop) {
      break;
    }
    if (stop) continue;
    AwaitWork(worker);
    SleepUs(kBatchUs);
  }
  worker.ended.Complete(kernel);
}

}  // namespace sipi::callrcu
