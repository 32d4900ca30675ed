// Output on the serial port, for scenarios that exercise it.
#pragma once

#include "guest/kernel/kernel.h"

namespace sipi {

// Prints this CPU's share of params->scenario_value bytes: lines "cpu NNNN line NNNNNNNN" padded to
// 64 bytes.
void PrintShare(PerCpu& self);

}  // namespace sipi
