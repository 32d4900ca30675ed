// Finds out that nothing can happen any more where HLT does not come to user space (irqchips
// `split` and `kernel`): when the process has used no CPU time for a while, every vCPU is asked
// what it does.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "vmm/vcpu/kernel_vcpu.h"

namespace sipi {

// Used by the thread that waits for the run's end.
class HaltMonitor {
 public:
  // `vcpus` must outlive it, and be running.
  explicit HaltMonitor(std::vector<KernelVcpu*> vcpus);

  static constexpr int kIntervalMs = 250;

  // Call at every interval. True once every CPU was found blocked, at the same place, in two rounds
  // an interval apart with no CPU time used in between: nothing can wake any of them. An inspection
  // takes some 20 us per CPU, so intervals of a machine that waits for a timer get longer.
  bool Tick();

 private:
  using Clock = std::chrono::steady_clock;
  bool Quiet();
  // The place of each CPU if all are blocked.
  std::optional<std::vector<uint64_t>> Inspect();

  const std::vector<KernelVcpu*> vcpus_;
  uint32_t round_ = 0;
  uint32_t skip_ = 0;  // intervals until the next inspection
  uint32_t backoff_ = 1;
  int64_t cpu_time_us_ = 0;
  std::optional<std::vector<uint64_t>> places_;  // of the last round
};

}  // namespace sipi
