// The scheduler's view of NUMA nodes (Linux: sched_update_numa(), kernel/sched/topology.c).
#pragma once

#include "guest/kernel/kernel.h"

namespace sipi {

// A CPU has become active, or no longer is. Where that gives its node the first active CPU or takes
// its last, the scheduler's distances and masks are made anew, and the old ones may be in use until
// a grace period has passed: waits for one (sched_reset_numa()). Not while the machine boots: then
// there is nothing to replace. On the CPU's hotplug thread, preemptible.
void UpdateNuma(Kernel& kernel, CpuNumber cpu, bool active);

}  // namespace sipi
