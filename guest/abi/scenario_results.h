// What scenarios leave beside the timeline, and what a reader of it must know. Freestanding.
#pragma once

#include "guest/abi/scenario.h"

namespace sipi::abi {

// refscale's loops: sections of a reader in one round.
inline constexpr uint32_t kRefLoops = 2'000;

// All members of TortureCounters are words of 64 bits.
inline void Add(TortureCounters& sum, const TortureCounters& part) {
  auto* to = reinterpret_cast<uint64_t*>(&sum);
  const auto* from = reinterpret_cast<const uint64_t*>(&part);
  for (uint32_t i = 0; i < sizeof(sum) / sizeof(uint64_t); ++i) to[i] += from[i];
}

// What one thread of a torture has found so far.
struct TortureTally {
  uint64_t next_gpa;  // 0: the last
  TortureCounters counts;
};

// At BootParams::torture_gpa. While a torture runs, the tallies of its threads stand apart, and a
// run that is cut short leaves them so: the counters here are then those of no thread, the grace
// periods and the callbacks, as of a moment before.
struct TorturePage {
  TortureCounters counters;
  uint64_t tallies_gpa;  // the first TortureTally; 0: none is to be added any more
};

}  // namespace sipi::abi
