// Waking threads, and where they go.
//
// Nobody's wake-up is lost: a sleeper sets its state and then looks at its condition, whoever makes
// that true looks at the state afterwards. The waker that takes the state from blocked to waking
// owns the thread. If it finds it on a queue, the thread has not left yet, and will not; if not, it
// has left altogether: the queue's lock is held over a switch, so that a thread which is on no
// queue has its context saved.
#include "guest/kernel/apic.h"
#include "guest/kernel/sched/run_queue.h"
#include "guest/kernel/sched/time.h"

namespace sipi {
namespace {

constexpr auto kRunnable = static_cast<uint32_t>(ThreadState::kRunnable);
constexpr auto kBlocked = static_cast<uint32_t>(ThreadState::kBlocked);
constexpr auto kWaking = static_cast<uint32_t>(ThreadState::kWaking);

// So many neighbours are asked whether they are idle.
constexpr uint32_t kLookAround = 64;
// A thread that comes takes the CPU from one of its own priority that has had it for so long.
constexpr uint64_t kWakeGranularityUs = 750;

// What the arrival of `thread` asks of the queue's CPU. The lock is held.
Resched NeedFor(const RunQueue& queue, const Thread& thread) {
  const Thread& current = *queue.current;
  if (thread.priority > current.priority) return Resched::kTick;
  const bool lazy = thread.kernel->kernel_knobs().preemption == abi::Preemption::kLazy;
  if (thread.priority < current.priority) {
    const bool ordinary = thread.priority == Priority::kNormal && &current != queue.idle;
    return lazy && ordinary ? Resched::kLazy : Resched::kNow;
  }
  const uint64_t granularity = platform::TicksOfUs(kWakeGranularityUs);
  if (thread.priority != Priority::kNormal ||
      platform::NowTicks() - queue.current_since_ticks < granularity) {
    return Resched::kTick;
  }
  return lazy ? Resched::kLazy : Resched::kNow;
}

uint32_t Waiting(const RunQueue& queue) {
  uint32_t count = 0;
  for (const uint32_t each : queue.waiting_count) count += each;
  return count;
}

// Tells the queue's CPU. The lock is held.
void Kick(RunQueue& queue, Resched need) {
  if (!queue.runs) return;
  PerCpu& self = platform::ThisCpu();
  const auto wanted = static_cast<uint32_t>(need);
  if (queue.area == &self) {
    Demand(self, need);
    return;
  }
  // Where somebody waited before, the tick runs already.
  if (need == Resched::kTick && Waiting(queue) > 1) return;
  // One that is on its way and asks for as much will do: the CPU takes this lock after it.
  if (queue.request.Load(std::memory_order_seq_cst) >= wanted) return;
  queue.request.Exchange(wanted, std::memory_order_seq_cst);
  SendQuietIpi(self, queue.area->cpu, Vector(abi::kRescheduleVector));
}

// Onto that queue, unless the thread may not be there.
bool TryQueue(Thread& thread, uint32_t cpu) {
  RunQueue& queue = QueueOf(*thread.kernel, cpu);
  queue.lock.Lock(*thread.kernel);
  const bool may = MayRunOn(thread, queue, cpu);
  if (may) EnqueueLocked(queue, thread, cpu);
  queue.lock.Unlock();
  return may;
}

// Where an unbound thread had best go.
uint32_t ChooseCpu(Kernel& kernel, uint32_t previous) {
  if (QueueOf(kernel, previous).idles.Load(std::memory_order_relaxed) != 0) return previous;
  const uint32_t idle = FindIdleCpu(kernel, previous);
  return idle != Thread::kAnyCpu ? idle : previous;
}

}  // namespace

void Demand(PerCpu& self, Resched need) {
  RunQueue& queue = *self.run_queue;
  if (need >= Resched::kLazy && self.need_resched < static_cast<uint32_t>(need)) {
    self.need_resched = static_cast<uint32_t>(need);
  }
  if (need != Resched::kNow && !queue.tick_wanted) {
    queue.tick_wanted = true;
    ArmNextTimer(self);
  }
}

bool MayRunOn(Thread& thread, const RunQueue& queue, uint32_t cpu) {
  const uint32_t bound = thread.affinity.Load(std::memory_order_relaxed);
  if (thread.per_cpu) return bound == cpu;
  return queue.active && (bound == Thread::kAnyCpu || bound == cpu);
}

void Link(RunQueue& queue, Thread& thread, bool first) {
  const auto priority = static_cast<uint32_t>(thread.priority);
  ThreadList& list = queue.waiting[priority];
  thread.on_queue = kOnQueue;
  thread.next = first ? list.first : nullptr;
  thread.previous = first ? nullptr : list.last;
  (thread.previous != nullptr ? thread.previous->next : list.first) = &thread;
  (thread.next != nullptr ? thread.next->previous : list.last) = &thread;
  ++queue.waiting_count[priority];
  // An idle CPU takes it at once: nobody else needs to hear of it.
  thread.movable = !thread.per_cpu && queue.current != queue.idle &&
                   thread.affinity.Load(std::memory_order_relaxed) == Thread::kAnyCpu;
  if (thread.movable) {
    queue.movable.FetchAdd(1, std::memory_order_relaxed);
    thread.kernel->scheduler->movable.FetchAdd(1, std::memory_order_relaxed);
  }
}

void Unlink(RunQueue& queue, Thread& thread) {
  const auto priority = static_cast<uint32_t>(thread.priority);
  ThreadList& list = queue.waiting[priority];
  (thread.previous != nullptr ? thread.previous->next : list.first) = thread.next;
  (thread.next != nullptr ? thread.next->previous : list.last) = thread.previous;
  --queue.waiting_count[priority];
  if (thread.movable) {
    queue.movable.FetchAdd(~0u, std::memory_order_relaxed);
    thread.kernel->scheduler->movable.FetchAdd(~0u, std::memory_order_relaxed);
  }
}

void EnqueueLocked(RunQueue& queue, Thread& thread, uint32_t cpu) {
  if (thread.cpu.Load(std::memory_order_relaxed) != cpu) {
    if (thread.kernel->kernel_knobs().trace_threads != 0) {
      platform::Trace(abi::TraceEvent::kMigrated, static_cast<uint16_t>(cpu), thread.number);
    }
    thread.cpu.Store(cpu, std::memory_order_relaxed);
  }
  Link(queue, thread, /*first=*/false);
  // A queue that nobody looks at is looked at from its beginning once its CPU comes.
  if (queue.runs) Kick(queue, NeedFor(queue, thread));
}

uint32_t FindIdleCpu(Kernel& kernel, uint32_t from) {
  const uint32_t count = kernel.params->cpu_count;
  const uint32_t looks = count - 1 < kLookAround ? count - 1 : kLookAround;
  uint32_t cpu = from;
  for (uint32_t i = 0; i < looks; ++i) {
    cpu = cpu + 1 == count ? 0 : cpu + 1;
    if (QueueOf(kernel, cpu).idles.Load(std::memory_order_relaxed) != 0) return cpu;
  }
  return Thread::kAnyCpu;
}

void PlaceThread(Thread& thread) {
  Kernel& kernel = *thread.kernel;
  const uint32_t bound = thread.affinity.Load(std::memory_order_relaxed);
  const uint32_t previous = thread.cpu.Load(std::memory_order_relaxed);
  if (bound != Thread::kAnyCpu) {
    if (TryQueue(thread, bound)) return;
    // The CPU has gone: better somewhere else than nowhere.
    thread.affinity.Store(Thread::kAnyCpu, std::memory_order_relaxed);
  }
  if (TryQueue(thread, ChooseCpu(kernel, previous))) return;
  for (uint32_t i = 1; i <= kernel.params->cpu_count; ++i) {
    if (TryQueue(thread, (previous + i) % kernel.params->cpu_count)) return;
  }
  SIPI_PANIC("no CPU takes threads");
}

bool WakeUp(Thread& thread) {
  uint32_t expected = kBlocked;
  if (!thread.state.Ref().CompareExchange(expected, kWaking, std::memory_order_seq_cst))
    return false;
  PreemptGuard preempt;  // whom it woke may run before it goes on
  IrqGuard irq;
  Kernel& kernel = *thread.kernel;
  for (;;) {
    const uint32_t cpu = thread.cpu.Load(std::memory_order_acquire);
    RunQueue& queue = QueueOf(kernel, cpu);
    queue.lock.Lock(kernel);
    if (thread.cpu.Load(std::memory_order_relaxed) != cpu) {
      queue.lock.Unlock();
      continue;  // it moved, which takes it longer than this look
    }
    const bool left = thread.on_queue == kOnNone;
    // Most go back to where they were: it is theirs, or idle.
    const bool stays =
        left && (thread.per_cpu || (queue.current == queue.idle && MayRunOn(thread, queue, cpu)));
    if (stays) EnqueueLocked(queue, thread, cpu);
    if (left && !stays) thread.on_queue = kMoving;
    thread.state.Store(kRunnable, std::memory_order_release);
    queue.lock.Unlock();
    if (left && !stays) PlaceThread(thread);
    return true;
  }
}

void SetNeedResched(PerCpu& self) { self.need_resched = static_cast<uint32_t>(Resched::kNow); }

void ReschedCpu(Kernel& kernel, CpuNumber cpu) {
  IrqGuard irq;
  RunQueue& queue = QueueOf(kernel, cpu.value);
  queue.lock.Lock(kernel);
  Kick(queue, Resched::kNow);
  queue.lock.Unlock();
}

}  // namespace sipi
