// Draws a profile's latencies with their jitter: seeded, one per CPU, so a run can be repeated.
#pragma once

#include <algorithm>
#include <cstdint>

#include "apic/regs/types.h"
#include "vmm/profile/profile.h"

namespace sipi {

class LatencyDice {
 public:
  LatencyDice(uint64_t seed, CpuNumber cpu)
      : state_(seed * 0x9e3779b97f4a7c15u + cpu.value * 0xd1b54a32d192ed03u) {}

  // Uniform in [ns - jitter_ns, ns + jitter_ns], never below 0. Nanoseconds.
  uint64_t Draw(const Latency& latency) {
    int64_t ns = latency.ns;
    if (latency.jitter_ns > 0) {
      const uint64_t width = 2 * static_cast<uint64_t>(latency.jitter_ns) + 1;
      ns += static_cast<int64_t>(Next() % width) - latency.jitter_ns;
    }
    return static_cast<uint64_t>(std::max<int64_t>(ns, 0));
  }

 private:
  // SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  uint64_t state_;
};

}  // namespace sipi
