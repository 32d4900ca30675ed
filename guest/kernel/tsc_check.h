// TSC synchronisation check: an AP and the control CPU read the TSC in turn under a lock and look
// for a step back. One AP at a time (Linux: arch/x86/kernel/tsc_sync.c serialises with an atomic).
#pragma once

#include "guest/kernel/cpuhp.h"
#include "guest/kernel/kernel.h"

namespace sipi {

// STARTING step, on the AP. Does nothing where the knob is off. Where the control CPU does not come
// within a handshake's bound, or gives this AP up, there is no check, and the timeline says so.
Error StartTscCheck(PerCpu& self, CpuNumber cpu);

// The control CPU's part, when tsc_check_request names an AP. Takes Knobs::tsc_check_us, and
// depends on no AP.
void ServeTscCheck(PerCpu& self);

// Control CPU, once the AP's handshake says should-die: an AP that waits for its check waits no
// longer.
void WithdrawTscCheck(Kernel& kernel, CpuNumber cpu);

}  // namespace sipi
