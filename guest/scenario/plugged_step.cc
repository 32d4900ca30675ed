#include "guest/scenario/plugged_step.h"

#include "guest/kernel/alloc.h"

namespace sipi {

void PlugStepIn(Kernel& kernel, const CpuhpStep& step, void* owner) {
  PluggedTable& plugged = *AllocateArray<PluggedTable>(kernel, 1);
  const CpuhpTable& table = *kernel.hotplug->steps;
  size_t at = 0;
  for (size_t s = 0; s < kSections; ++s) {
    bool due = static_cast<Section>(s) == step.section;
    plugged.begin[s] = plugged.steps + at;
    for (const CpuhpStep& each : table.Steps(static_cast<Section>(s))) {
      SIPI_ASSERT(at + 2 < PluggedTable::kMaxSteps && each.state != step.state);
      if (due && each.state > step.state) {
        plugged.steps[at++] = step;
        due = false;
      }
      plugged.steps[at++] = each;
    }
    if (due) plugged.steps[at++] = step;
  }
  plugged.begin[kSections] = plugged.steps + at;
  plugged.owner = owner;
  kernel.hotplug->steps = &plugged;
}

}  // namespace sipi
