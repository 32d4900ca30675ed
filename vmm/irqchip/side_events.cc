#include "vmm/irqchip/side_events.h"

#include <algorithm>
#include <vector>

namespace sipi {

void SideEvents::CopyTo(HostLog& log) const {
  std::vector<abi::TraceRecord> records;
  for (size_t i = 0; i < capacity_; ++i) {
    const Entry& entry = entries_[i];
    const abi::TraceEvent event = entry.event.load(std::memory_order_acquire);
    if (event == abi::TraceEvent::kNone) continue;
    records.push_back({.tsc = entry.tsc.load(std::memory_order_relaxed),
                       .event = event,
                       .target = 0,
                       .value = entry.value.load(std::memory_order_relaxed)});
  }
  // Two senders may take their places in one order and read the clock in the other.
  std::sort(records.begin(), records.end(),
            [](const auto& a, const auto& b) { return a.tsc < b.tsc; });
  for (const abi::TraceRecord& each : records) log.EmitAt(each.tsc, each.event, 0, each.value);
}

}  // namespace sipi
