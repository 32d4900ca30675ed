// The kernel's local APIC driver, for both modes: intent-level verbs over the platform's register
// access.
#pragma once

#include "apic/regs/icr.h"
#include "apic/regs/registers.h"
#include "guest/kernel/kernel.h"

namespace sipi {

// Software-enables the running CPU's local APIC (SDM vol 3A, 11.4.7.2: after INIT it is disabled).
// LVTs stay masked, as INIT leaves them.
void EnableLocalApic();

// Send INIT / Start-Up to one CPU or to all but self, with the trace and the counters.
void SendInit(PerCpu& self, CpuNumber target);
void SendInitDeassert(PerCpu& self, CpuNumber target);
void SendStartup(PerCpu& self, CpuNumber target, Vector vector);
void SendInitAllButSelf(PerCpu& self);
void SendInitDeassertAllButSelf(PerCpu& self);
void SendStartupAllButSelf(PerCpu& self, Vector vector);

// Fixed interrupts.
void SendIpi(PerCpu& self, CpuNumber target, Vector vector);
void SendIpiAllButSelf(PerCpu& self, Vector vector);
// Without a trace record: there are more of these than a ring holds.
void SendQuietIpi(PerCpu& self, CpuNumber target, Vector vector);

// Lets a timer interrupt come at `deadline` or a little later, unless one is armed that comes
// before it. The CPU's timer frequency, or the TSC-deadline mode, must be known. Tickless: nothing
// else ever arms the timer.
void ArmTimer(PerCpu& self, platform::Deadline deadline);

inline void EndOfInterrupt() { platform::ApicWrite(apic::Reg::kEoi, 0); }

}  // namespace sipi
