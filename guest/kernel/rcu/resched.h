// What RCU asks of the scheduler.
#pragma once

#include "guest/kernel/rcu/state.h"

namespace sipi::rcu {

// The running CPU shall go through Schedule() at the next chance. Interrupts off.
void AskForReschedule(PerCpu& self);
// Another CPU shall: an interrupt.
void AskForReschedule(Kernel& kernel, CpuNumber cpu);
// The running CPU's core work is to be done soon.
bool NeedsReschedule(PerCpu& self);

}  // namespace sipi::rcu
