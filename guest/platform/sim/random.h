// The simulator's only source of chance: seeded, integers only, the same on every host.
#pragma once

#include <cstdint>

namespace sipi::sim {

class Random {
 public:
  // `stream` tells the generators of one seed apart: one per CPU, one for the machine.
  Random(uint64_t seed, uint64_t stream)
      : state_(seed * 0x9e3779b97f4a7c15u + stream * 0xd1b54a32d192ed03u) {}

  // SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  // Below `bound`, which is not 0.
  uint64_t Below(uint64_t bound) { return Next() % bound; }

 private:
  uint64_t state_;
};

}  // namespace sipi::sim
