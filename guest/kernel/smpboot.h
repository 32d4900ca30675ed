// SMP bring-up: the control CPU's and the AP's side of the handshake, and the strategies'
// operations.
#pragma once

#include "guest/kernel/cpuhp.h"
#include "guest/kernel/kernel.h"

namespace sipi {

// Brings all CPUs of the order up as the strategy says. Boot CPU, interrupts on. CPUs that fail are
// named in the trace and in their slots; the others go on.
void BringUpSecondaryCpus(PerCpu& self);

// Brings up once more, one by one, the CPUs of the order that have failed; those that are late get
// a handshake's time to see that they were given up. Boot CPU, interrupts on, after a bring-up.
void RetryFailedCpus(PerCpu& self);

// Makes sure that INITs can reach every vCPU, where the VMM asked to be told. Boot CPU, before its
// first kick.
void RingBeforeKick(Kernel& kernel);

// As above, for a bring-up that the VMM sequences: prepares every CPU, rings Doorbell::kReady, and
// waits.
void LetHostBringUp(PerCpu& self);

// Fills a per-CPU area: identity and an empty trace ring. Any CPU, before `cpu` runs.
void InitPerCpu(Kernel& kernel, PerCpu& area, CpuNumber cpu);

// Step callbacks of the table, on the control CPU.
Error KickAp(PerCpu& self, CpuNumber cpu);
Error CancelAp(PerCpu& self, CpuNumber cpu);
Error WaitAlive(PerCpu& self, CpuNumber cpu);
Error WaitStartingDone(PerCpu& self, CpuNumber cpu);

// Parks the running CPU for good.
[[noreturn]] void Park(PerCpu& self);

}  // namespace sipi
