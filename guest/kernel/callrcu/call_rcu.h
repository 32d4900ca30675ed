// call_rcu workers: one thread per CPU that waits for a grace period and runs what was queued at
// its CPU before. The scheme of liburcu's per-CPU call_rcu threads, as a service beside RCU's own
// callbacks; when a worker binds itself to its CPU is a knob (WorkerPinning).
#pragma once

#include "guest/kernel/rcu/task.h"
#include "guest/kernel/sched/wait.h"

namespace sipi::callrcu {

struct Worker;

// All workers of one machine, in the kernel's memory.
struct Workers {
  Kernel* kernel = nullptr;
  Worker* workers = nullptr;  // [params->cpu_count]
  uint32_t count = 0;
  // Of the barrier that runs, one at a time.
  Mutex barrier_mutex;
  platform::Atomic<uint32_t> barrier_left{0};
  WaitQueue barrier_done;
};

// What a worker has done so far. Exact once a barrier has returned and nobody queues.
struct WorkerStats {
  uint64_t queued = 0;
  uint64_t run = 0;
  uint64_t batches = 0;
  uint64_t ran_away = 0;   // batches that ran on another CPU than the worker's
  uint64_t pinned_us = 0;  // from the worker's start until it bound itself; 0: it has not
};

// Makes a worker for each CPU, online or not; that of a CPU on which nobody queues does nothing.
// Thread context.
Workers& Start(Kernel& kernel);

// Queues head at the running CPU: function(head) is called by that CPU's worker, in thread context,
// after a grace period. Thread context, any CPU; may be called by a callback.
void Call(Workers& workers, rcu::Head& head, void (*function)(rcu::Head&));

// Returns when all that was queued before has run. Thread context, preemptible, not a callback.
void Barrier(Workers& workers);

// Runs what is queued and ends the workers. Nobody may queue any more.
void Stop(Workers& workers);

WorkerStats StatsOf(Workers& workers, CpuNumber cpu);

}  // namespace sipi::callrcu
