// guest/kernel as the program of a simulated machine.
#pragma once

#include "guest/platform/sim/machine.h"

namespace sipi::sim {

extern const Program kKernelProgram;

// What the boot CPU does before KernelMain: the Kernel in the machine's memory, with all that the
// parameters say where to find. On the boot CPU's fiber.
Kernel& MakeKernel(Cpu& cpu);

}  // namespace sipi::sim
