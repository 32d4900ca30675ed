// Kernel threads: what one is, how it is made, and the calls by which it gives up its CPU.
//
// Each CPU has a run queue (run_queue.h), an idle thread, and threads bound to it; other threads are
// placed where they are woken. A thread that an interrupt preempts may go on on another CPU: so
// `PerCpu&` is only good while preemption or interrupts are disabled.
#pragma once

#include <cstdint>

#include "guest/kernel/kernel.h"
#include "guest/kernel/rcu/task.h"

namespace sipi {

enum class ThreadState : uint32_t {
  kRunnable = 0,  // runs, or waits for its turn
  kBlocked = 1,   // waits for WakeUp
  kDead = 2,
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

  platform::Atomic<uint32_t> state{0};   // ThreadState
  platform::Atomic<uint32_t> cpu{0};     // where it runs, or ran last
  platform::Atomic<uint32_t> on_cpu{0};  // 1: its context is live on that CPU
  platform::Atomic<uint32_t> affinity{kAnyCpu};
  // Guarded by the run queue's lock of `cpu`.
  uint32_t on_queue = 0;
  Thread* next = nullptr;
  Thread* previous = nullptr;

  // Touched by the thread itself only.
  uint32_t preempt_count = 0;
  rcu::TaskState rcu;

  // For the waits below, one at a time per thread (they must not lie on a stack: sched/wait.h).
  platform::Atomic<uint32_t> wait_word{0};
  rcu::Head wait_head;

  static constexpr uint32_t kAnyCpu = ~0u;
};

struct ThreadSpec {
  const char* name;  // with a '%' where the index goes: "cpuhp/%"
  uint32_t index = 0;
  void (*function)(void*) = nullptr;  // ends: the thread is dead
  void* argument = nullptr;
  uint32_t cpu = Thread::kAnyCpu;  // bound to it, or to none
  Priority priority = Priority::kNormal;
};

// Makes a thread that is runnable at once. Thread context or boot, preemptible. A thread bound to a
// CPU that is not online runs once it is.
Thread& SpawnThread(Kernel& kernel, const ThreadSpec& spec);

// The running thread; null before the scheduler is set up. Any context.
inline Thread* CurrentThread() { return platform::CurrentThread(); }

// --- Preemption. Counts nest; what is between may rely on ThisCpu().
void PreemptDisable();
void PreemptEnable();  // the preemption that was put off happens here
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
    if (enabled_) platform::IrqEnable();
  }
  IrqGuard(const IrqGuard&) = delete;
  IrqGuard& operator=(const IrqGuard&) = delete;

 private:
  bool enabled_;
};

// --- Giving up the CPU. Thread context, preemption and interrupts enabled.
void Schedule();      // to the next thread; a thread whose state is kBlocked sleeps
void CondResched();   // if another should run
void MightResched();  // likewise, with Preemption::kVoluntary only
void YieldThread();

// Makes a blocked thread runnable; false if it was not blocked. Any context, any CPU.
bool WakeUp(Thread& thread);

// Binds the thread to a CPU, or frees it (Thread::kAnyCpu); the running thread moves at once, others
// when they are next switched out or woken. False: that CPU is not online. Thread context.
bool SetAffinity(Thread& thread, uint32_t cpu);

// --- For hotplug (guest/kernel/hotplug).
void SchedInit(Kernel& kernel);  // boot CPU: its context becomes the thread "init"
void SchedPrepareCpu(Kernel& kernel,
                     CpuNumber cpu);       // control CPU: idle, stopper and other threads
void SchedStartCpu(PerCpu& self);          // AP: its context becomes its idle thread
void SchedActivateCpu(PerCpu& self);       // its own thread: ordinary threads may come
void SchedDeactivateCpu(PerCpu& self);     // its own thread: no more come, those there leave
[[noreturn]] void IdleLoop(PerCpu& self);  // until the CPU dies

}  // namespace sipi
