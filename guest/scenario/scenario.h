// What the guest does once its CPUs are up.
#pragma once

#include "guest/kernel/kernel.h"

namespace sipi {

// Runs params->scenario on the boot CPU, interrupts on. Faults that concern all CPUs are made here.
void RunScenario(PerCpu& self);

// Those that need KernelKnobs::services, on the thread "init".
void RunHotplug(Kernel& kernel);
void RunSmt(Kernel& kernel);
void RunThreads(Kernel& kernel);

}  // namespace sipi
