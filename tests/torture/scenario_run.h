// A scenario of the guest kernel on simulated CPUs, and what it left.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "guest/scenario/rcu_scenarios.h"
#include "tests/kernel/kernel_machine.h"

namespace sipi {

struct ScenarioRun {
  bool ok = false;
  std::string end;  // in words
  abi::TortureCounters counters = {};
  uint32_t cpus_online = 0;
  uint64_t now_ns = 0;
  std::vector<std::vector<abi::TraceRecord>> records;  // by CPU

  uint64_t Count(abi::TraceEvent event) const {
    uint64_t count = 0;
    for (const auto& cpu : records) {
      count += static_cast<uint64_t>(
          std::count_if(cpu.begin(), cpu.end(),
                        [event](const abi::TraceRecord& each) { return each.event == event; }));
    }
    return count;
  }
  // The values of the first few such events.
  std::string Values(abi::TraceEvent event) const {
    std::string text;
    for (const auto& cpu : records) {
      for (const abi::TraceRecord& each : cpu) {
        if (each.event == event && text.size() < 100) text += " " + std::to_string(each.value);
      }
    }
    return text;
  }
};

inline ScenarioRun RunScenario(KernelOptions options, void (*scenario)(Kernel&)) {
  options.time_limit_ns = 600'000'000'000;
  KernelMachine machine(options);
  const sim::End end = machine.RunToEnd(scenario);
  ScenarioRun run;
  run.ok = end.kind == sim::EndKind::kGuestExit && end.code == 0;
  run.end = machine.Describe(end);
  run.counters =
      *reinterpret_cast<const abi::TortureCounters*>(machine.kernel().params->torture_gpa);
  run.cpus_online = machine.result().cpus_online;
  run.now_ns = machine.machine().now_ns();
  for (uint32_t cpu = 0; cpu < options.cpus; ++cpu) run.records.push_back(machine.Trace(cpu));
  return run;
}

}  // namespace sipi
