// The instant at which something happens to an APIC, on the two clocks that it can see.
//
// The model has no clock: whoever calls it says what time it is. A VMM reads its monotonic clock
// and the vCPU's TSC; a simulator passes its virtual time. Source of the two: SDM vol 3A, 11.5.4
// and 11.5.4.1. The relation between them, TSC offset and scaling, is the caller's affair.
#pragma once

#include <cstdint>

namespace sipi::apic {

struct Time {
  uint64_t ns = 0;   // monotonic; drives the bus clock of the one-shot and periodic timer
  uint64_t tsc = 0;  // the guest's TSC at that instant; drives the TSC-deadline timer
};

}  // namespace sipi::apic
