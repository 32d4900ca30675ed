// Jiffies, sleeping and timers. There is no periodic tick on an idle CPU: jiffies are computed from
// the clock, and a CPU's timer is armed for what is next due there.
#pragma once

#include "guest/kernel/sched/thread.h"

namespace sipi {

// Whole jiffies since boot; knobs().hz of them in a second. Any context.
uint64_t Jiffies(Kernel& kernel);
uint64_t JiffyNs(Kernel& kernel);

// The deadline of schedule_timeout(n): as the timer wheel, at the first tick that is at least n
// whole jiffies away.
platform::Deadline DeadlineInJiffies(Kernel& kernel, uint64_t jiffies);

// Sleep. Thread context, preemptible.
void SleepUntil(platform::Deadline deadline);
void SleepUs(uint64_t us);
void SleepJiffies(uint64_t jiffies);

// A timer's function runs in interrupt context. Start: not armed yet; any context.
void StartTimer(Timer& timer, platform::Deadline deadline);
// False: it has fired, its function may still run, or it was not armed. Any context.
bool StopTimer(Kernel& kernel, Timer& timer);

// The timer interrupt's work, interrupts off.
void RunTimers(PerCpu& self);
// Arms the running CPU's timer for whatever is due next: timers, and the tick where it is needed.
void ArmNextTimer(PerCpu& self);
// The timers of a CPU that is dead, onto the running one. Control CPU.
void AdoptTimers(PerCpu& self, CpuNumber dead);

}  // namespace sipi
