// Timer and delay calibration against the reference clock, and its reuse.
#pragma once

#include "guest/kernel/cpuhp.h"
#include "guest/kernel/kernel.h"

namespace sipi {

// Learns the boot CPU's TSC and local APIC timer frequency and starts NowNs(). Boot CPU, once.
void CalibrateBootCpu(PerCpu& self);

// STARTING step: calibrates the running AP, or takes over what a CPU of the reuse scope has found.
Error StartTimers(PerCpu& self, CpuNumber cpu);

}  // namespace sipi
