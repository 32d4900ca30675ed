#include "guest/kernel/hotplug/numa.h"

#include "guest/kernel/hotplug/state.h"

namespace sipi {

void UpdateNuma(Kernel& kernel, CpuNumber cpu, bool active) {
  NodeHotplug& node = kernel.hotplug->nodes[kernel.entry(cpu).node];
  const uint32_t before = node.active_cpus.FetchAdd(active ? 1u : ~0u, std::memory_order_seq_cst);
  if (kernel.hotplug->booted && before == (active ? 0u : 1u)) HotplugSynchronize(kernel);
}

}  // namespace sipi
