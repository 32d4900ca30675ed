// The wake-up tree of `tree`: who wakes whom, and what becomes of those whose waker is lost.
#pragma once

#include "guest/kernel/kernel.h"

namespace sipi {

// Gives every CPU of the order its rank. Boot CPU, before any AP is kicked.
void PlantTree(Kernel& kernel);

// Kicks the ranks that this CPU has to wake. Any CPU of a `tree` bring-up, once alive.
void KickTreeChildren(PerCpu& self);

// A dead AP takes with it all that it would have woken: kicks those whom nobody has kicked, and
// reminds those that were kicked and are not alive. Boot CPU.
void KickTreeOrphans(PerCpu& self);

// True while some CPU is still about to send this one its INIT. Such a CPU must not be kicked
// again: that INIT would come on top. Boot CPU.
bool TreeKickUnderWay(Kernel& kernel, CpuNumber cpu);

}  // namespace sipi
