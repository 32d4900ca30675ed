// A scenario of the guest kernel on the simulator: what it left, without the VMM around.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "guest/abi/percpu.h"
#include "guest/kernel/kernel.h"
#include "guest/platform/sim/simulator.h"
#include "vmm/load/params.h"

namespace sipi {

struct KernelRun {
  sim::End end;
  abi::TortureCounters counters = {};
  std::string panic;  // empty without one
  uint32_t cpus_online = 0;
  uint64_t now_ns = 0;
  struct Record {
    uint32_t cpu;
    abi::TraceRecord record;
  };
  std::vector<Record> records;  // by CPU, then by time
  uint64_t lost = 0;

  bool ok() const { return end.kind == sim::EndKind::kGuestExit && end.code == 0; }
  uint64_t Count(abi::TraceEvent event) const {
    return static_cast<uint64_t>(
        std::count_if(records.begin(), records.end(),
                      [event](const Record& each) { return each.record.event == event; }));
  }
  // The checks that have failed, in words.
  std::string Failures() const {
    std::string text;
    for (const Record& each : records) {
      if (each.record.event != abi::TraceEvent::kTortureFailure) continue;
      text += " " + std::to_string(each.record.value) + " on CPU " + std::to_string(each.cpu);
    }
    return text;
  }
};

inline RunConfig KernelConfig(uint32_t cpus, abi::Scenario scenario) {
  RunConfig config;
  config.machine = MachineKind::kSim;
  config.cpus = cpus;
  config.topology = FlatTopology(cpus);
  for (uint32_t cpu = 1; cpu < cpus; ++cpu) config.order.push_back(cpu);
  config.clock_known = true;
  config.scenario = scenario;
  config.kernel.services = 1;
  return config;
}

// `limit_ns` of virtual time.
inline KernelRun RunKernel(const RunConfig& config, uint64_t limit_ns = 600'000'000'000) {
  const ArenaLayout arena = PlanSimulatedArena(NeedsOf(config));
  sim::Options options;
  for (const CpuPlace& place : config.topology.places) {
    options.cpus.push_back(
        {.apic_id = place.apic_id, .shown_apic_id = {}, .package = place.package});
  }
  options.seed = config.seed;
  options.time_limit_ns = limit_ns;
  options.host_cores = config.host_cores;
  options.memory_bytes = arena.end.value;
  options.boot_params = BuildBootParams(config, arena, options.tsc_khz);
  KernelRun run;
  std::string error;
  const auto simulator = sim::Simulator::Create(std::move(options), &error);
  EXPECT_NE(simulator, nullptr) << error;
  if (simulator == nullptr) return run;
  run.end = simulator->Run();
  run.now_ns = simulator->now_ns();
  memcpy(&run.counters, simulator->base() + arena.torture.value, sizeof(run.counters));
  const auto& result =
      *reinterpret_cast<const abi::ResultPage*>(simulator->base() + arena.result.value);
  run.cpus_online = result.cpus_online;
  if (static_cast<abi::GuestStatus>(result.status) == abi::GuestStatus::kPanic) {
    run.panic = std::string(result.panic_file) + ":" + std::to_string(result.panic_line) + ": " +
                result.panic_text + " (CPU " + std::to_string(result.panic_cpu) + ")";
  }
  for (uint32_t cpu = 0; cpu < config.cpus; ++cpu) {
    const auto& header = *reinterpret_cast<const abi::PerCpuHeader*>(
        simulator->base() + arena.percpu.value + uint64_t{cpu} * arena.percpu_stride_bytes);
    const uint64_t end = std::min(header.ring_cursor, header.ring_end);
    if (header.ring_cursor > end) run.lost += (header.ring_cursor - end) / sizeof(abi::TraceRecord);
    for (uint64_t at = header.ring_begin; at < end; at += sizeof(abi::TraceRecord)) {
      run.records.push_back({cpu, *reinterpret_cast<const abi::TraceRecord*>(at)});
    }
  }
  return run;
}

}  // namespace sipi
