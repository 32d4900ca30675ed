// What hotplug leaves in the rings of a simulated machine.
#pragma once

#include <algorithm>
#include <vector>

#include "tests/kernel/kernel_machine.h"

namespace sipi {

// Of all CPUs in the order of their clocks, which the simulated machine's CPUs share.
inline std::vector<abi::TraceRecord> Timeline(KernelMachine& machine) {
  std::vector<abi::TraceRecord> all;
  for (uint32_t cpu = 0; cpu < machine.machine().size(); ++cpu) {
    const std::vector<abi::TraceRecord> one = machine.Trace(cpu);
    all.insert(all.end(), one.begin(), one.end());
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.tsc < b.tsc; });
  return all;
}

// What happened between two events of that kind, the n-th counted from 0.
struct Span {
  uint32_t syncs = 0;
  std::vector<uint32_t> states;  // entered by the CPU
};

inline std::vector<Span> Operations(KernelMachine& machine, abi::TraceEvent begin,
                                    abi::TraceEvent end) {
  std::vector<Span> spans;
  bool inside = false;
  for (const abi::TraceRecord& record : Timeline(machine)) {
    if (record.event == begin) {
      inside = true;
      spans.emplace_back();
    }
    if (inside && record.event == abi::TraceEvent::kSyncBegin) ++spans.back().syncs;
    if (inside && record.event == abi::TraceEvent::kCpuhpEnter) {
      spans.back().states.push_back(record.value);
    }
    if (record.event == end) inside = false;
  }
  return spans;
}

}  // namespace sipi
