#include "bench/threads_run.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "guest/platform/threads/machine.h"
#include "vmm/load/params.h"

namespace sipi {
namespace {

RunConfig ConfigOf(const ThreadsConfig& config) {
  RunConfig run;
  run.cpus = config.cpus;
  run.topology = FlatTopology(config.cpus);
  for (uint32_t cpu = 1; cpu < config.cpus; ++cpu) run.order.push_back(cpu);
  run.clock_known = true;
  run.knobs.handshake_timeout_ms = config.handshake_timeout_ms;
  run.kernel = config.kernel;
  run.scenario_knobs = config.scenario;
  return run;
}

uint64_t CountRecords(threads::Machine& machine, uint32_t cpus, abi::TraceEvent event) {
  uint64_t count = 0;
  for (uint32_t i = 0; i < cpus; ++i) {
    const abi::PerCpuHeader& header = machine.kernel().percpu(CpuNumber(i)).header;
    const uint64_t end = std::min(header.ring_cursor, header.ring_end);
    for (uint64_t at = header.ring_begin; at < end; at += sizeof(abi::TraceRecord)) {
      count += reinterpret_cast<const abi::TraceRecord*>(at)->event == event ? 1u : 0u;
    }
  }
  return count;
}

}  // namespace

ThreadsResult RunOnThreads(const ThreadsConfig& config, void (*body)(Kernel& kernel)) {
  ThreadsResult result;
  const ArenaNeeds needs = {.cpus = config.cpus,
                            .boot_records = config.records,
                            .percpu_records = config.records,
                            .heap_bytes = config.heap_bytes};
  const ArenaLayout arena = PlanSimulatedArena(needs);
  threads::Options options;
  options.cpus = config.cpus;
  options.boot_params = BuildBootParams(ConfigOf(config), arena, threads::HostTscKhz());
  options.memory_bytes = arena.ram_bytes;
  options.body = body;
  const auto machine = threads::Machine::Create(std::move(options), &result.error);
  if (machine == nullptr) return result;
  const threads::End end = machine->Run();
  const Kernel& kernel = machine->kernel();
  result.error = end.panic;
  result.ok = end.code == 0;
  result.cpus_online = kernel.result->cpus_online;
  if (kernel.params->torture_gpa != 0) {
    memcpy(&result.counters, reinterpret_cast<const void*>(kernel.params->torture_gpa),
           sizeof(result.counters));
  }
  result.pinned = CountRecords(*machine, config.cpus, abi::TraceEvent::kWorkerPinned);
  result.ran_away = CountRecords(*machine, config.cpus, abi::TraceEvent::kWorkerRanAway);
  return result;
}

}  // namespace sipi
