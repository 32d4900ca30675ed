// How large the trace rings and the heap of a run must be.
#include <algorithm>
#include <bit>

#include "guest/abi/scenario.h"
#include "guest/abi/trace.h"
#include "vmm/load/params.h"

namespace sipi {
namespace {

// All rings together: what leaves room for the rest in a guest's first 3 GiB. Simulated CPUs keep
// what does not fit into theirs elsewhere (sim::Options::spare_records).
constexpr uint64_t kRingBudgetBytes = uint64_t{1} << 30;

// Threads and their stacks, run queues, rcu_data: per CPU; and what there is once.
constexpr uint64_t kHeapBytes = uint64_t{16} << 20;
constexpr uint64_t kHeapBytesPerCpu = uint64_t{256} << 10;
// A thread of a scenario: its stack, itself, and what it counts.
constexpr uint64_t kHeapBytesPerThread = uint64_t{24} << 10;
// A callback in flight with what it frees.
constexpr uint64_t kBytesPerCallback = 64;
constexpr uint64_t kCallbackHeapLimitBytes = uint64_t{512} << 20;

// One CPU going off or on: its states, the lock, grace periods and interrupts, as the control CPU
// sees them; the share of the CPU itself; and what the grace-period kthread adds wherever it runs.
constexpr uint64_t kControlRecordsPerOperation = 192;
constexpr uint64_t kOwnRecordsPerOperation = 128;
constexpr uint64_t kGpRecordsPerOperation = 16;
// One timed grace period of one writer, with the switches and wake-ups around it. Writers go on
// until the slowest is done, so some measure many times the number asked for.
constexpr uint64_t kRecordsPerMeasurement = 32;
constexpr uint64_t kFastestToSlowest = 10;
constexpr uint64_t kServiceRecords = 2048;  // boot, threads, idle
// Two simulated CPUs of the default knobs make 13, most of them on the boot CPU.
constexpr uint64_t kTortureRecordsPerMs = 20;

uint64_t Approaches(const abi::ScenarioKnobs& knobs) {
  return static_cast<uint64_t>(std::popcount(knobs.approaches));
}

uint64_t Operations(const RunConfig& config) {
  const abi::ScenarioKnobs& knobs = config.scenario_knobs;
  const uint64_t cpus = config.topology.cpu_count();
  switch (config.scenario) {
    case abi::Scenario::kHotplug:
      return 2 * uint64_t{knobs.rounds} * (knobs.hotplug_cpu == 0 ? cpus : 1);
    case abi::Scenario::kSmt:
      return 2 * uint64_t{knobs.rounds} * cpus * Approaches(knobs);
    default:
      return 0;
  }
}

// Of a scenario's own work on any CPU.
uint64_t WorkRecords(const RunConfig& config) {
  const abi::ScenarioKnobs& knobs = config.scenario_knobs;
  const uint64_t cpus = config.topology.cpu_count();
  switch (config.scenario) {
    case abi::Scenario::kRcuScale:
      return knobs.measurements * (kRecordsPerMeasurement * kFastestToSlowest + 4 * cpus);
    case abi::Scenario::kCallRcu:
      return knobs.measurements;  // a batch of callbacks each, at worst
    case abi::Scenario::kTorture:
      return knobs.duration_ms * kTortureRecordsPerMs;
    default:
      return 0;
  }
}

constexpr uint64_t kMostStartups = 10'000;
constexpr uint64_t kTortureMsPerStartup = 50;

}  // namespace

uint32_t StartupsPerCpu(const RunConfig& config) {
  uint64_t startups = 1 + Operations(config) / 2 / config.topology.cpu_count();
  if (config.scenario_knobs.hotplug_cpu != 0) startups = 1 + Operations(config) / 2;
  if (config.scenario == abi::Scenario::kTorture) {
    startups += config.scenario_knobs.duration_ms / kTortureMsPerStartup;
  }
  return static_cast<uint32_t>(std::min(startups, kMostStartups));
}

ArenaNeeds NeedsOf(const RunConfig& config) {
  ArenaNeeds needs;
  needs.cpus = config.topology.cpu_count();
  if (config.kernel.services == 0) return needs;
  const uint64_t operations = Operations(config);
  const uint64_t rounds = std::max<uint64_t>(1, operations / needs.cpus);
  const uint64_t anywhere = kServiceRecords + WorkRecords(config);
  constexpr uint64_t most = kRingBudgetBytes / 2 / sizeof(abi::TraceRecord);
  needs.boot_records = std::min(anywhere + operations * kControlRecordsPerOperation, most);
  needs.percpu_records =
      std::min(anywhere + rounds * kOwnRecordsPerOperation + operations * kGpRecordsPerOperation,
               most / needs.cpus);
  const abi::ScenarioKnobs& knobs = config.scenario_knobs;
  needs.heap_bytes = kHeapBytes + kHeapBytesPerCpu * needs.cpus +
                     kHeapBytesPerThread * (uint64_t{knobs.readers} + knobs.writers);
  if (config.scenario == abi::Scenario::kCallRcu) {
    needs.heap_bytes += std::min(uint64_t{knobs.measurements} * needs.cpus * kBytesPerCallback,
                                 kCallbackHeapLimitBytes);
  }
  return needs;
}

}  // namespace sipi
