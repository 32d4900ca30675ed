// A case's dice: a stream of its own for each seed, apart from the run's.
#pragma once

#include <cstdint>

namespace sipi {

// SplitMix64, as everywhere.
class Draws {
 public:
  explicit Draws(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 0x5851f42d4c957f2du) {}
  uint64_t Below(uint64_t bound) {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % bound;
  }
  bool OneIn(uint64_t n) { return Below(n) == 0; }

 private:
  uint64_t state_;
};

}  // namespace sipi
