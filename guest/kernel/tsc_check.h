// TSC synchronisation check: an AP and the control CPU read the TSC in turn under a lock and look
// for a step back. One AP at a time (Linux: arch/x86/kernel/tsc_sync.c serialises with an atomic).
#pragma once

#include "guest/kernel/cpuhp.h"
#include "guest/kernel/kernel.h"

namespace sipi {

// STARTING step, on the AP. Does nothing where the knob is off.
Error StartTscCheck(PerCpu& self, CpuNumber cpu);

// The control CPU's part, when tsc_check_request names an AP.
void ServeTscCheck(PerCpu& self);

}  // namespace sipi
