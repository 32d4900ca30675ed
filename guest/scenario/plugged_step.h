// One more step in the kernel's hotplug table: what a driver plugs in, for scenarios that want
// something done by a CPU that is on its way up or down.
#pragma once

#include "guest/kernel/hotplug/state.h"

namespace sipi {

struct PluggedTable : CpuhpTable {
  static constexpr size_t kMaxSteps = 64;
  CpuhpStep steps[kMaxSteps];
  void* owner = nullptr;
};

// Puts `step` where its section and state belong; the table has none of that state yet. For good,
// while no CPU moves. Thread context.
void PlugStepIn(Kernel& kernel, const CpuhpStep& step, void* owner);

// For the step's callbacks: what PlugStepIn was given.
template <class T>
T& OwnerOfPlugged(const PerCpu& self) {
  return *static_cast<T*>(static_cast<const PluggedTable*>(self.kernel->hotplug->steps)->owner);
}

}  // namespace sipi
