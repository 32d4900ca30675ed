// guest/kernel as the program of a simulated machine.
#pragma once

#include "guest/platform/sim/machine.h"

namespace sipi::sim {

extern const Program kKernelProgram;

}  // namespace sipi::sim
