// Kernel threads: what one is, how it is made, and the calls by which it gives up its CPU.
//
// Each CPU has a run queue (run_queue.h), an idle thread, and threads bound to it; other threads
// are placed where they are woken. A thread that an interrupt preempts may go on on another CPU: so
// `PerCpu&` is only good while preemption or interrupts are disabled, or in a thread that is bound.
#pragma once

#include <cstdint>

#include "guest/kernel/kernel.h"
#include "guest/kernel/rcu/task.h"
#include "guest/kernel/sched/call_entry.h"
#include "guest/kernel/sched/timer.h"

namespace sipi {

//   runnable --PrepareToBlock--> blocked --WakeUp--> waking --the same WakeUp--> runnable
enum class ThreadState : uint32_t {
  kRunnable = 0,  // runs, or waits for its turn
  kBlocked = 1,   // waits for WakeUp
  kDead = 2,
  kWaking = 3,  // belongs to the WakeUp that found it blocked
};

// Lower comes first; within one, threads of a CPU take turns.
enum class Priority : uint32_t { kStop = 0, kFifo = 1, kNormal = 2, kIdle = 3 };
inline constexpr uint32_t kPriorities = 4;

struct Thread {
  platform::Context context;
  char name[20] = {};
  Kernel* kernel = nullptr;
  void (*function)(void*) = nullptr;
  void* argument = nullptr;
  Priority priority = Priority::kNormal;
  uint32_t number = 0;
  Thread* older = nullptr;  // the one that was made before it
  // Belongs to one CPU as long as that exists: never pushed off it, waits while it is offline.
  bool per_cpu = false;

  platform::Atomic<uint32_t> state{0};  // ThreadState
  platform::Atomic<uint32_t> cpu{0};    // where it runs, or ran last
  platform::Atomic<uint32_t> affinity{kAnyCpu};
  // Guarded by the run queue's lock of `cpu`, unless it is moving: then it is the mover's.
  uint32_t on_queue = 0;  // kOnNone ... (run_queue.h)
  bool movable = false;   // it waits and counts as one that another CPU may take
  Thread* next = nullptr;
  Thread* previous = nullptr;

  // Touched by the thread itself only.
  uint32_t preempt_count = 0;
  rcu::TaskState rcu;

  // For the waits below, one at a time per thread (they must not lie on a stack: sched/wait.h).
  Timer timer;
  // Guarded by the lock of the wait queue that it is in.
  Thread* next_waiter = nullptr;
  Thread* previous_waiter = nullptr;
  bool waits = false;
  CallEntry call;  // a function call that it waits for

  static constexpr uint32_t kAnyCpu = ~0u;
};

struct ThreadSpec {
  const char* name;  // with a '%' where the index goes: "cpuhp/%"
  uint32_t index = 0;
  void (*function)(void*) = nullptr;  // ends: the thread is dead
  void* argument = nullptr;
  uint32_t cpu = Thread::kAnyCpu;  // a per-CPU thread of that one; or it runs anywhere
  Priority priority = Priority::kNormal;
  bool asleep = false;  // it runs from its first WakeUp on, not at once
};

// Makes a thread that is runnable at once. Thread context or boot, preemptible. A per-CPU thread of
// a CPU that is not online runs once it is.
Thread& SpawnThread(Kernel& kernel, const ThreadSpec& spec);

// The running thread; null before the scheduler is set up. Any context.
inline Thread* CurrentThread() { return platform::CurrentThread(); }

// --- Preemption. Counts nest; what is between may rely on ThisCpu().

// PerCpu::need_resched.
enum class Resched : uint32_t {
  kNo = 0,
  kTick = 1,  // only as a demand: somebody waits, let the tick run
  kLazy = 2,  // at the next tick, or where the thread goes through the scheduler by itself
  kNow = 3,
};
void PreemptSlowly();  // PreemptEnable's rest
inline void PreemptDisable() { ++CurrentThread()->preempt_count; }
inline void PreemptEnable() {  // the preemption that was put off happens here
  Thread& current = *CurrentThread();
  if (--current.preempt_count == 0 && platform::ThisCpu().need_resched != 0) PreemptSlowly();
}
class PreemptGuard {
 public:
  PreemptGuard() { PreemptDisable(); }
  ~PreemptGuard() { PreemptEnable(); }
  PreemptGuard(const PreemptGuard&) = delete;
  PreemptGuard& operator=(const PreemptGuard&) = delete;
};
// Interrupts off, and as they were.
class IrqGuard {
 public:
  IrqGuard() : enabled_(platform::IrqsEnabled()) { platform::IrqDisable(); }
  ~IrqGuard() {
    if (!enabled_) return;
    platform::IrqEnable();
    if (platform::ThisCpu().need_resched != 0 && CurrentThread()->preempt_count == 0)
      PreemptSlowly();
  }
  IrqGuard(const IrqGuard&) = delete;
  IrqGuard& operator=(const IrqGuard&) = delete;

 private:
  bool enabled_;
};

// --- Giving up the CPU. Thread context, preemption and interrupts enabled.
void Schedule();      // to the next thread; a thread whose state is kBlocked sleeps
void CondResched();   // if another should run, and preemption does not see to that by itself
void MightResched();  // likewise, with Preemption::kVoluntary only
void YieldThread();   // lets others of its priority run first

// To sleep until a condition holds: PrepareToBlock; look at the condition; Schedule, or, if it
// holds, CancelBlock. Whoever makes it true calls WakeUp afterwards. Schedule may return early, so
// this stands in a loop. The running thread only; interrupts as they like.
void PrepareToBlock(Thread& current);
void CancelBlock(Thread& current);

// Makes a blocked thread runnable; false if it was not blocked. Any context, any CPU. Takes the run
// queues' locks: a caller's own locks come before these.
bool WakeUp(Thread& thread);

// Has a CPU go through the scheduler soon: at the next place where its thread may be preempted, or
// at its next CondResched. Any context; SetNeedResched: interrupts or preemption off.
void SetNeedResched(PerCpu& self);
void ReschedCpu(Kernel& kernel, CpuNumber cpu);

// Binds the thread to a CPU, or frees it (Thread::kAnyCpu); the running thread moves at once,
// others that wait or run are moved soon. Should the CPU go offline, the binding is dropped. False:
// that CPU takes no threads, nothing was done. Thread context.
bool SetAffinity(Thread& thread, uint32_t cpu);

// --- For hotplug (guest/kernel/hotplug).
void SchedInit(Kernel& kernel);  // boot CPU, its clock known: its context becomes the thread "init"
// Control CPU, before `cpu` is kicked: its run queue, idle and stopper thread. Thread context.
void SchedPrepareCpu(Kernel& kernel, CpuNumber cpu);
// The CPU itself, interrupts off: its context becomes its idle thread, its threads may run.
void SchedStartCpu(PerCpu& self);
// Its own per-CPU thread, or its idle thread: ordinary threads may come.
void SchedActivateCpu(PerCpu& self);
// Its own per-CPU thread: no more come, those that wait there leave. Afterwards only per-CPU
// threads run there, and what was asleep wakes elsewhere.
void SchedDeactivateCpu(PerCpu& self);
// The idle thread's work, interrupts off. Where CpuSlot::online is 0 it ends in Park.
[[noreturn]] void IdleLoop(PerCpu& self);

}  // namespace sipi
