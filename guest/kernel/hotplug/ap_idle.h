// What a CPU itself does at the two ends of its life as an online CPU, on its idle context.
#pragma once

#include "guest/kernel/kernel.h"

namespace sipi {

// STARTING section done, about to enter the idle loop: whoever waits for this CPU goes on (Linux:
// cpuhp_online_idle). Interrupts on or off.
void ReachIdle(PerCpu& self);

// The idle loop calls it, interrupts off, when it finds its CPU out of the online mask
// (CpuWentOffline): the last that this CPU does. RCU is told, then the control CPU.
[[noreturn]] void IdleDead(PerCpu& self);
inline bool CpuWentOffline(PerCpu& self) { return self.slot->online == 0; }

}  // namespace sipi
