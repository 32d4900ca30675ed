#include "guest/kernel/alloc.h"
#include "guest/kernel/callrcu/call_rcu.h"
#include "guest/kernel/callrcu/worker.h"

namespace sipi::callrcu {
namespace {

void WorkerMain(void* argument) { RunWorker(*static_cast<Worker*>(argument)); }

void BarrierCallback(rcu::Head& head) {
  Workers& workers = *static_cast<BarrierHead&>(head).workers;
  if (workers.barrier_left.FetchAdd(~0u, std::memory_order_seq_cst) == 1) {
    workers.barrier_done.WakeAll(*workers.kernel);
  }
}

// Nothing was ever queued there, so there is nothing to wait for.
bool HadNothing(Worker& worker) {
  SpinGuard guard(*worker.workers->kernel, worker.lock);
  return worker.queued == 0;
}

}  // namespace

Workers& Start(Kernel& kernel) {
  auto& workers = *AllocateArray<Workers>(kernel, 1);
  workers.kernel = &kernel;
  workers.count = kernel.params->cpu_count;
  workers.workers = AllocateArray<Worker>(kernel, workers.count);
  for (uint32_t i = 0; i < workers.count; ++i) {
    Worker& worker = workers.workers[i];
    worker.workers = &workers;
    worker.cpu = CpuNumber(i);
    worker.last_cpu = i;
    worker.barrier.workers = &workers;
    SpawnThread(kernel,
                {.name = "call_rcu/%", .index = i, .function = WorkerMain, .argument = &worker});
  }
  return workers;
}

void Call(Workers& workers, rcu::Head& head, void (*function)(rcu::Head&)) {
  head.function = function;
  PreemptGuard same_cpu;
  Worker& worker = workers.workers[platform::ThisCpu().cpu.value];
  if (Enqueue(worker, head)) WakeWorker(worker);
}

void Barrier(Workers& workers) {
  workers.barrier_mutex.Lock();
  workers.barrier_left.Store(workers.count, std::memory_order_seq_cst);
  for (uint32_t i = 0; i < workers.count; ++i) {
    Worker& worker = workers.workers[i];
    if (HadNothing(worker)) {  // its CPU may never have been up
      BarrierCallback(worker.barrier);
      continue;
    }
    worker.barrier.function = BarrierCallback;
    if (Enqueue(worker, worker.barrier)) WakeWorker(worker);
  }
  workers.barrier_done.Wait(
      [&workers] { return workers.barrier_left.Load(std::memory_order_seq_cst) == 0; });
  workers.barrier_mutex.Unlock();
}

void Stop(Workers& workers) {
  for (uint32_t i = 0; i < workers.count; ++i) {
    Worker& worker = workers.workers[i];
    {
      SpinGuard guard(*workers.kernel, worker.lock);
      worker.stop.Store(1, std::memory_order_seq_cst);
      worker.sleeping = false;
    }
    WakeWorker(worker);
  }
  for (uint32_t i = 0; i < workers.count; ++i) workers.workers[i].ended.Wait();
}

WorkerStats StatsOf(Workers& workers, CpuNumber cpu) {
  Worker& worker = workers.workers[cpu.value];
  SpinGuard guard(*workers.kernel, worker.lock);
  return {.queued = worker.queued,
          .run = worker.run,
          .batches = worker.batches,
          .ran_away = worker.ran_away,
          .pinned_us = worker.pinned_us};
}

}  // namespace sipi::callrcu
