// Jiffies, timers and sleeping.
#include "guest/kernel/sched/time.h"

#include "guest/kernel/sched/run_queue.h"

namespace sipi {
namespace {

// By deadline; those of one deadline in the order in which they were started. The lock is held.
void Insert(RunQueue& queue, Timer& timer) {
  Timer** at = &queue.first_timer;
  while (*at != nullptr && (*at)->deadline_ticks <= timer.deadline_ticks) at = &(*at)->next;
  timer.next = *at;
  *at = &timer;
}

void Start(PerCpu& self, Timer& timer) {
  RunQueue& queue = *self.run_queue;
  queue.timer_lock.Lock(*self.kernel);
  timer.cpu.Store(self.cpu.value, std::memory_order_relaxed);
  Insert(queue, timer);
  queue.timer_lock.Unlock();
  if (timer.deadline_ticks < queue.next_timer_ticks) {
    queue.next_timer_ticks = timer.deadline_ticks;
    ArmNextTimer(self);
  }
}

// The first timer if it is due, taken off the list; else null, and `next_timer_ticks` is right.
Timer* TakeDue(PerCpu& self, uint64_t now) {
  RunQueue& queue = *self.run_queue;
  queue.timer_lock.Lock(*self.kernel);
  Timer* const first = queue.first_timer;
  Timer* due = nullptr;
  if (first == nullptr || first->deadline_ticks > now) {
    queue.next_timer_ticks = first == nullptr ? kNoTimer : first->deadline_ticks;
  } else {
    due = first;
    queue.first_timer = first->next;
    first->armed.Store(0, std::memory_order_release);
  }
  queue.timer_lock.Unlock();
  return due;
}

}  // namespace

uint64_t Jiffies(Kernel& kernel) {
  const Scheduler& scheduler = *kernel.scheduler;
  const uint64_t now = platform::NowTicks();
  return now < scheduler.boot_ticks ? 0 : (now - scheduler.boot_ticks) / scheduler.ticks_per_jiffy;
}

uint64_t JiffyNs(Kernel& kernel) { return 1'000'000'000 / kernel.kernel_knobs().hz; }

platform::Deadline DeadlineInJiffies(Kernel& kernel, uint64_t jiffies) {
  const Scheduler& scheduler = *kernel.scheduler;
  return {scheduler.boot_ticks + (Jiffies(kernel) + jiffies + 1) * scheduler.ticks_per_jiffy};
}

void SleepUntil(platform::Deadline deadline) {
  Thread& current = *CurrentThread();
  while (!platform::Expired(deadline)) {
    PrepareToBlock(current);
    StartTimer(current.timer, deadline);
    Schedule();
    (void)StopTimer(*current.kernel, current.timer);
  }
}

void SleepUs(uint64_t us) { SleepUntil(platform::DeadlineInUs(us)); }

void SleepJiffies(uint64_t jiffies) {
  SleepUntil(DeadlineInJiffies(*CurrentThread()->kernel, jiffies));
}

void StartTimer(Timer& timer, platform::Deadline deadline) {
  IrqGuard irq;
  timer.deadline_ticks = deadline.ticks;
  timer.armed.Store(1, std::memory_order_relaxed);
  Start(platform::ThisCpu(), timer);
}

bool StopTimer(Kernel& kernel, Timer& timer) {
  IrqGuard irq;
  while (timer.armed.Load(std::memory_order_acquire) != 0) {
    const uint32_t cpu = timer.cpu.Load(std::memory_order_relaxed);
    RunQueue& queue = QueueOf(kernel, cpu);
    queue.timer_lock.Lock(kernel);
    const bool here = timer.cpu.Load(std::memory_order_relaxed) == cpu;
    const bool armed = here && timer.armed.Load(std::memory_order_relaxed) != 0;
    if (armed) {
      Timer** at = &queue.first_timer;
      while (*at != &timer) at = &(*at)->next;
      *at = timer.next;
      timer.armed.Store(0, std::memory_order_relaxed);
    }
    queue.timer_lock.Unlock();
    if (armed) return true;
  }
  return false;
}

void RunTimers(PerCpu& self) {
  const uint64_t now = platform::NowTicks();
  if (now < self.run_queue->next_timer_ticks) return;
  while (Timer* const timer = TakeDue(self, now)) timer->function(timer->argument);
}

void AdoptTimers(PerCpu& self, CpuNumber dead) {
  IrqGuard irq;
  RunQueue& from = QueueOf(*self.kernel, dead.value);
  for (;;) {
    from.timer_lock.Lock(*self.kernel);
    Timer* const timer = from.first_timer;
    if (timer != nullptr) from.first_timer = timer->next;
    // Whoever stops it now waits for it to be here.
    if (timer != nullptr) timer->cpu.Store(self.cpu.value, std::memory_order_relaxed);
    from.timer_lock.Unlock();
    if (timer == nullptr) return;
    Start(self, *timer);
  }
}

}  // namespace sipi
