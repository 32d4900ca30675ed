// stop_machine(): every CPU's stopper thread, the most urgent one there is, goes through the same
// states as the others, each once all have reached the one before; in one of them interrupts are
// off everywhere and one CPU calls the function.
#include "guest/kernel/alloc.h"
#include "guest/kernel/sched/run_queue.h"
#include "guest/kernel/sched/smp_call.h"

namespace sipi {

enum class StopPhase : uint32_t { kNone, kPrepare, kDisableIrq, kRun, kExit, kOver };

struct StopState {
  Mutex mutex;  // one stop at a time
  Completion done;
  // The caller's, before it wakes the stoppers.
  void (*function)(void*) = nullptr;
  void* argument = nullptr;
  uint32_t cpu = 0;
  uint32_t count = 0;
  alignas(64) platform::Atomic<uint32_t> phase{0};
  alignas(64) platform::Atomic<uint32_t> missing{0};  // stoppers that have not done this phase
  platform::Atomic<uint32_t> leaving{0};
};

namespace {

constexpr uint32_t kAll = 1;
constexpr uint32_t kOne = 2;
constexpr uint32_t kSliceUs = 20;

// Waits for the phase after `seen`. Bounded by the CPUs, each of which has to reach its stopper.
uint32_t NextPhase(Kernel& kernel, StopState& stop, uint32_t seen) {
  SIPI_ASSERT(platform::SpinPolitely(
      stop.phase.Ref(), [seen](uint32_t phase) { return phase != seen; }, kSliceUs,
      WaitedForEver(kernel)));
  return stop.phase.Load(std::memory_order_acquire);
}

void GoThroughStop(Kernel& kernel, StopState& stop, uint32_t cpu) {
  uint32_t seen = static_cast<uint32_t>(StopPhase::kNone);
  while (seen != static_cast<uint32_t>(StopPhase::kExit)) {
    seen = NextPhase(kernel, stop, seen);
    if (seen == static_cast<uint32_t>(StopPhase::kDisableIrq)) platform::IrqDisable();
    if (seen == static_cast<uint32_t>(StopPhase::kRun) && cpu == stop.cpu) {
      stop.function(stop.argument);
    }
    if (stop.missing.FetchAdd(~0u, std::memory_order_acq_rel) == 1) {
      stop.missing.Store(stop.count, std::memory_order_relaxed);
      stop.phase.Store(seen + 1, std::memory_order_release);
    }
  }
  platform::IrqEnable();
  if (stop.leaving.FetchAdd(~0u, std::memory_order_acq_rel) == 1) stop.done.Complete(kernel);
}

void Ask(RunQueue& queue, uint32_t request) {
  queue.stop_request.Exchange(request, std::memory_order_seq_cst);
  (void)WakeUp(*queue.stopper);  // it may not have come to its wait queue yet
}

}  // namespace

void InitStop(Kernel& kernel) { kernel.scheduler->stop = AllocateArray<StopState>(kernel, 1); }

void StopperMain(void* argument) {
  RunQueue& queue = *static_cast<RunQueue*>(argument);
  Kernel& kernel = *queue.area->kernel;
  StopState& stop = *kernel.scheduler->stop;
  for (;;) {
    queue.stop_waiting.Wait(
        [&] { return queue.stop_request.Load(std::memory_order_seq_cst) != 0; });
    const uint32_t request = queue.stop_request.Exchange(0, std::memory_order_seq_cst);
    if (request == kAll) {
      GoThroughStop(kernel, stop, queue.area->cpu.value);
    } else if (request == kOne) {
      stop.function(stop.argument);
      stop.done.Complete(kernel);
    }
  }
}

void StopMachine(Kernel& kernel, CpuNumber cpu, void (*function)(void*), void* argument) {
  StopState& stop = *kernel.scheduler->stop;
  stop.mutex.Lock();
  stop.function = function;
  stop.argument = argument;
  stop.cpu = cpu.value;
  stop.count = kernel.online_count.Load(std::memory_order_seq_cst);
  stop.missing.Store(stop.count, std::memory_order_relaxed);
  stop.leaving.Store(stop.count, std::memory_order_relaxed);
  stop.phase.Store(static_cast<uint32_t>(StopPhase::kPrepare), std::memory_order_release);
  {
    // This CPU's own stopper must not come before all have been asked.
    PreemptGuard preempt;
    for (uint32_t i = 0; i < kernel.params->cpu_count; ++i) {
      platform::AtomicRef<uint32_t> online(kernel.slots[i].online);
      if (online.Load(std::memory_order_relaxed) != 0) Ask(QueueOf(kernel, i), kAll);
    }
  }
  stop.done.Wait();
  stop.phase.Store(static_cast<uint32_t>(StopPhase::kNone), std::memory_order_relaxed);
  stop.mutex.Unlock();
}

void StopOneCpu(Kernel& kernel, CpuNumber cpu, void (*function)(void*), void* argument) {
  StopState& stop = *kernel.scheduler->stop;
  stop.mutex.Lock();
  stop.function = function;
  stop.argument = argument;
  Ask(QueueOf(kernel, cpu.value), kOne);
  stop.done.Wait();
  stop.mutex.Unlock();
}

}  // namespace sipi
