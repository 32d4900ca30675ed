// Where cpuhp.h's executor hands over to hotplug's: a machine with threads and RCU.
#pragma once

#include "guest/kernel/cpuhp.h"

namespace sipi {

// As CpuhpUp and CpuhpDown, for the section that `self` executes itself.
Error SectionUp(PerCpu& self, CpuNumber cpu, Section section, abi::CpuhpState target);
void SectionDown(PerCpu& self, CpuNumber cpu, Section section);

}  // namespace sipi
