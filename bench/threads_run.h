// Runs of the guest kernel on threads of the host (guest/platform/threads), for benchmarks and
// tests.
#pragma once

#include <cstdint>
#include <string>

#include "guest/abi/scenario.h"
#include "guest/kernel/kernel.h"

namespace sipi {

struct ThreadsConfig {
  uint32_t cpus = 2;
  abi::KernelKnobs kernel = {.services = 1};
  abi::ScenarioKnobs scenario;
  uint64_t heap_bytes = uint64_t{64} << 20;
  uint64_t records = 4096;  // of each CPU's trace ring
  uint32_t handshake_timeout_ms = 60'000;
};

struct ThreadsResult {
  bool ok = false;
  std::string error;  // why not: the guest's panic, or the host's reason
  abi::TortureCounters counters = {};
  uint32_t cpus_online = 0;
  uint64_t pinned = 0;    // events of kWorkerPinned
  uint64_t ran_away = 0;  // events of kWorkerRanAway
};

// Boots so many CPUs, calls body(kernel) in the thread "init", and ends. Once at a time.
ThreadsResult RunOnThreads(const ThreadsConfig& config, void (*body)(Kernel& kernel));

}  // namespace sipi
