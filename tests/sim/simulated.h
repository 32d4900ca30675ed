// Runs of the guest kernel on the simulator, as `sipi run --machine=sim` makes them.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "vmm/machine/run.h"

namespace sipi {

inline RunConfig SimulatedConfig(uint32_t cpus, sequence::StrategyId strategy) {
  RunConfig config;
  config.machine = MachineKind::kSim;
  config.cpus = cpus;
  config.topology = FlatTopology(cpus);
  for (uint32_t cpu = 1; cpu < cpus; ++cpu) config.order.push_back(cpu);
  config.strategy = sequence::MakeStrategy(strategy);
  config.serial_fd = -1;
  config.time_limit_ms = 3'600'000;
  return config;
}

inline RunConfig WithTopology(RunConfig config, const std::string& spec) {
  const absl::StatusOr<Topology> topology = ParseTopology(spec, 0);
  EXPECT_TRUE(topology.ok()) << topology.status();
  config.topology = *topology;
  config.cpus = topology->cpu_count();
  config.order.clear();
  for (uint32_t cpu = 1; cpu < config.cpus; ++cpu) config.order.push_back(cpu);
  return config;
}

inline RunRecord RunIt(const RunConfig& config) {
  StopRequest stop;
  absl::StatusOr<RunRecord> record = RunMachine(config, stop);
  EXPECT_TRUE(record.ok()) << record.status();
  return record.ok() ? *std::move(record) : RunRecord();
}

// When a CPU's first event of that name was; -1: never.
inline int64_t TimeOf(const RunRecord& record, int32_t cpu, abi::TraceEvent name) {
  for (const Event& event : record.events) {
    if (event.cpu == cpu && event.name == name) return event.t_ns;
  }
  return -1;
}

inline uint64_t CountOf(const RunRecord& record, abi::TraceEvent name) {
  uint64_t count = 0;
  for (const Event& event : record.events) count += event.name == name ? 1u : 0u;
  return count;
}

inline constexpr sequence::StrategyId kAllStrategies[] = {
    sequence::StrategyId::kSerial,   sequence::StrategyId::kKick,
    sequence::StrategyId::kKickWait, sequence::StrategyId::kPrimaryFirst,
    sequence::StrategyId::kFull,     sequence::StrategyId::kBroadcast,
    sequence::StrategyId::kTree};

}  // namespace sipi
