// Callbacks of the step table that need threads or RCU (KernelKnobs::services). `self` executes,
// `cpu` moves; where a callback may sleep, `self` is the CPU that its thread is bound to meanwhile.
#pragma once

#include "guest/kernel/cpuhp.h"

namespace sipi {

// PREPARE, control CPU.
Error PrepareThreads(PerCpu& self, CpuNumber cpu);    // area, idle and hotplug thread
Error LeaveCpuidleDead(PerCpu& self, CpuNumber cpu);  // pseries: one grace period
Error PrepareRcu(PerCpu& self, CpuNumber cpu);
Error FinishRcu(PerCpu& self, CpuNumber cpu);
Error TakeTimers(PerCpu& self, CpuNumber cpu);       // of a dead CPU, to this one
Error CancelKicked(PerCpu& self, CpuNumber cpu);     // and waits for one that runs to be dead
Error AwaitAlive(PerCpu& self, CpuNumber cpu);       // sleeping
Error ReleaseAndAwait(PerCpu& self, CpuNumber cpu);  // until it is in its idle loop

// STARTING, the CPU itself, interrupts off.
Error StartWithRcu(PerCpu& self, CpuNumber cpu);
Error RcuDying(PerCpu& self, CpuNumber cpu);
Error StartScheduler(PerCpu& self, CpuNumber cpu);
Error OpenCalls(PerCpu& self, CpuNumber cpu);
Error CloseCalls(PerCpu& self, CpuNumber cpu);  // those that wait run

// TEARDOWN, control CPU.
Error TeardownCpu(PerCpu& self, CpuNumber cpu);
// Its end: the CPU is dead, and RCU's callbacks that it left are this CPU's. kTimeoutDead: it is
// not, within the bound of a handshake, and counts as lost (CpuHotplug).
Error SeeDead(PerCpu& self, CpuNumber cpu);

// ONLINE, the CPU's hotplug thread.
Error OnlineRcu(PerCpu& self, CpuNumber cpu);
Error OfflineRcu(PerCpu& self, CpuNumber cpu);
Error EnterCpuidle(PerCpu& self, CpuNumber cpu);  // pseries: one grace period
Error Activate(PerCpu& self, CpuNumber cpu);
Error DeactivateAndWait(PerCpu& self, CpuNumber cpu);  // one grace period

// Lets an AP go that is alive; nothing if it was let go before. False if it is lost.
bool ReleaseAp(PerCpu& self, CpuNumber cpu);

}  // namespace sipi
