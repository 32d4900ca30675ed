// Jiffies, sleeping and timers. There is no periodic tick on an idle CPU: jiffies are computed from
// the clock, and a CPU's timer is armed for what is next due there.
#pragma once

#include "guest/kernel/sched/thread.h"

namespace sipi {

// Whole jiffies since boot; knobs().hz of them in a second. Any context.
uint64_t Jiffies(Kernel& kernel);
uint64_t JiffyNs(Kernel& kernel);

// The deadline of schedule_timeout(n): as the timer wheel, at the first tick that is at least n whole
// jiffies away.
platform::Deadline DeadlineInJiffies(Kernel& kernel, uint64_t jiffies);

// Sleep. Thread context, preemptible.
void SleepUntil(platform::Deadline deadline);
void SleepUs(uint64_t us);
void SleepJiffies(uint64_t jiffies);

// Calls function(argument) in interrupt context on the CPU that started it, or, where that went
// offline, on the one that took its timers over.
struct Timer {
  void (*function)(void*) = nullptr;
  void* argument = nullptr;
  uint64_t deadline_ticks = 0;
  uint32_t cpu = 0;
  bool armed = false;
  Timer* next = nullptr;
};
void StartTimer(Timer& timer, platform::Deadline deadline);  // not armed yet; any context
bool StopTimer(Kernel& kernel, Timer& timer);  // false: it has fired, or was not armed

// The timer interrupt's work, interrupts off.
void RunTimers(PerCpu& self);
// Arms the running CPU's timer for whatever is due next: timers, and the tick where it is needed.
void ArmNextTimer(PerCpu& self);
// The timers of a CPU that is dead, onto the running one. Control CPU.
void AdoptTimers(PerCpu& self, CpuNumber dead);

}  // namespace sipi
