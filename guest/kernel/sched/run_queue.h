// A CPU's run queue and what the files of the scheduler know of each other. Everything else
// includes thread.h.
//
// A run queue is guarded by its lock, taken with interrupts off. Two of them are never held at
// once: a thread that moves belongs to whoever moves it while it is on neither (state runnable,
// on_queue 0). The lock is held over a switch: the thread that leaves takes it, the one that
// arrives gives it up (FinishSwitch). A running thread counts as on_queue but stands in no list.
#pragma once

#include "guest/kernel/sched/lock.h"
#include "guest/kernel/sched/thread.h"
#include "guest/kernel/sched/wait.h"

namespace sipi {

// Thread::on_queue.
inline constexpr uint32_t kOnNone = 0;   // it has left, context and all
inline constexpr uint32_t kOnQueue = 1;  // it runs or waits for its turn
inline constexpr uint32_t kMoving = 2;   // runnable, between two queues

inline constexpr uint64_t kNoTimer = ~uint64_t{0};
inline constexpr uint64_t kCallsClosed = 1;

struct ThreadList {
  Thread* first = nullptr;
  Thread* last = nullptr;
};

struct RunQueue {
  SpinLock lock;
  // Guarded by the lock.
  ThreadList waiting[kPriorities];
  uint32_t waiting_count[kPriorities] = {};
  Thread* current = nullptr;
  uint64_t current_since_ticks = 0;
  bool runs = false;    // the CPU looks at this queue
  bool active = false;  // threads that are not its own may come

  PerCpu* area = nullptr;
  Thread* idle = nullptr;
  Thread* stopper = nullptr;

  // This CPU's own, interrupts off.
  Thread* previous = nullptr;    // whom the last switch left
  bool previous_leaves = false;  // it goes to another CPU
  bool tick_wanted = false;      // threads of one priority take turns, or a lazy one waits
  bool in_softirq = false;
  bool timer_mode_set = false;           // its APIC timer is in TSC-deadline mode, at its vector
  uint64_t tick_ticks = 0;               // when the next tick is due; 0: none
  uint64_t next_timer_ticks = kNoTimer;  // no timer of this CPU is due before

  // What others want of the CPU, a Resched.
  alignas(64) platform::Atomic<uint32_t> request{0};
  // 1: the CPU has nothing to do. A hint for those who place threads.
  platform::Atomic<uint32_t> idles{0};
  // Threads that wait here and that another CPU may take. Changed with the lock held.
  platform::Atomic<uint32_t> movable{0};

  // Timers, by deadline. The lock is taken with interrupts off and none other inside it.
  alignas(64) SpinLock timer_lock;
  Timer* first_timer = nullptr;

  // Function calls (smp_call.cc): the youngest entry, or kClosed.
  alignas(64) platform::Atomic<uint64_t> calls{kCallsClosed};
  platform::Atomic<uint32_t> callers{0};  // CPUs that are pushing, or have and may yet interrupt
  CallEntry own_call;                     // for calls by this CPU that nobody waits for

  // Stopping (stop.cc): what the stopper is to do.
  platform::Atomic<uint32_t> stop_request{0};
  WaitQueue stop_waiting;
};

struct StopState;

struct Scheduler {
  RunQueue* queues = nullptr;  // [params->cpu_count]
  uint64_t boot_ticks = 0;     // jiffy 0 begins
  uint64_t ticks_per_jiffy = 0;
  Thread* init = nullptr;
  StopState* stop = nullptr;
  platform::Atomic<uint32_t> threads{0};      // how many there have been
  platform::Atomic<uint64_t> last_thread{0};  // the youngest; Thread::older leads to the others
  // Threads that wait for their turn and may go elsewhere, of all CPUs.
  alignas(64) platform::Atomic<uint32_t> movable{0};
};

inline RunQueue& QueueOf(Kernel& kernel, uint32_t cpu) { return kernel.scheduler->queues[cpu]; }

// --- schedule.cc. Interrupts off.
// Switches to the thread that comes next. `preempted`: the running one is not asked whether it
// blocks, and keeps its place.
void SwitchThread(bool preempted);
// What the thread that has arrived does for the one that has left.
void FinishSwitch();
// A thread changes its own state, which whoever is waking it has to have left alone first.
void ChangeState(Thread& current, ThreadState to);

// --- wake.cc
// May the thread be on that CPU? The queue's lock held.
bool MayRunOn(Thread& thread, const RunQueue& queue, uint32_t cpu);
void Link(RunQueue& queue, Thread& thread, bool first);
void Unlink(RunQueue& queue, Thread& thread);
// Puts the thread, which is on no queue, at the end of that one, and tells its CPU. Lock held.
void EnqueueLocked(RunQueue& queue, Thread& thread, uint32_t cpu);
// The running CPU shall go through the scheduler, or let the tick run. Interrupts off.
void Demand(PerCpu& self, Resched need);
// A runnable thread that is on no queue and on no CPU: onto one. Interrupts off.
void PlaceThread(Thread& thread);
// An idle CPU that takes ordinary threads, beginning behind `from`; or kAnyCpu. A hint.
uint32_t FindIdleCpu(Kernel& kernel, uint32_t from);

// --- balance.cc
// A CPU that has nothing to do takes a thread from one that has too many. Interrupts off.
bool PullThread(PerCpu& self);
// Likewise, from this one to an idle one. Interrupts off.
void PushThread(PerCpu& self);

// --- tick.cc. Interrupts off.
void SchedTick(PerCpu& self);
// The running thread has had the CPU for as long as it may while others of its priority wait.
bool TurnIsOver(const RunQueue& queue);
// Sets the timer for what is next due, and not earlier: an idle CPU is not woken for nothing.
void ArmForIdle(PerCpu& self);
// The reschedule interrupt's work.
void TakeRequest(PerCpu& self);

// --- irq.cc
void HandleServiceInterrupt(PerCpu& self, Vector vector);

// --- thread.cc
[[noreturn]] void ExitThread();
// --- stop.cc
void InitStop(Kernel& kernel);
void StopperMain(void* queue);

}  // namespace sipi
