// One call_rcu worker: its queue and its thread.
#pragma once

#include "guest/kernel/callrcu/call_rcu.h"

namespace sipi::callrcu {

// liburcu: SET_AFFINITY_CHECK_PERIOD, and the poll() between two batches.
inline constexpr uint32_t kLazyPinningLoops = 256;
inline constexpr uint64_t kBatchUs = 10'000;

// A barrier's callback: the last in the queue at that time.
struct BarrierHead : rcu::Head {
  Workers* workers = nullptr;
};

struct alignas(64) Worker {
  Workers* workers = nullptr;
  CpuNumber cpu{0};
  Thread* thread = nullptr;
  BarrierHead barrier;
  WaitQueue waiting;
  Completion ended;
  platform::Atomic<uint32_t> asked{0};  // 1: the sleeping worker has something to do
  platform::Atomic<uint32_t> stop{0};

  // The queue, first come first. Guarded by `lock`, which callers hold for a few instructions: all
  // but the worker itself run on `cpu`, so nobody waits for long.
  SpinLock lock;
  rcu::Head* first = nullptr;
  rcu::Head* last = nullptr;
  uint64_t queued = 0;
  bool sleeping = false;  // whoever queues next wakes the worker

  // The worker's own.
  uint64_t started_ns = 0;
  uint32_t loops = 0;
  bool pinned = false;
  uint64_t run = 0;
  uint64_t batches = 0;
  uint64_t ran_away = 0;
  uint32_t last_cpu = 0;  // where its last batch ran
  uint64_t pinned_us = 0;
};

// The thread: loops until it is told to stop and has run everything.
void RunWorker(Worker& worker);

// Puts head at the end of the worker's queue; true: the worker sleeps, and is to be woken.
bool Enqueue(Worker& worker, rcu::Head& head);
void WakeWorker(Worker& worker);

}  // namespace sipi::callrcu
