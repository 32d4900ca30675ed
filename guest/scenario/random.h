// A scenario's dice: the same seed gives the same throws on every machine. Freestanding.
#pragma once

#include <cstdint>

namespace sipi {

class Random {
 public:
  Random() = default;
  Random(uint64_t seed, uint64_t stream) : state_(seed * kGolden + (stream + 1) * kOdd) { Next(); }

  // splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
  uint64_t Next() {
    state_ += kGolden;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * kOdd;
    return z ^ (z >> 31);
  }
  // 0 .. bound - 1; bound from 1 to 2^32.
  uint32_t Below(uint32_t bound) { return static_cast<uint32_t>(((Next() >> 32) * bound) >> 32); }
  bool OneIn(uint32_t n) { return Below(n) == 0; }

 private:
  static constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;
  static constexpr uint64_t kOdd = 0x94d049bb133111ebu;
  uint64_t state_ = 0;
};

}  // namespace sipi
