// What a torture has counted by the end of the run, whether it came to its own end or not.
#pragma once

#include <cstdint>

#include "guest/abi/scenario_results.h"

namespace sipi {

// `at` gives the tally at such an address; null: there can be none. Of tallies that are linked in a
// circle, as a guest may do that has gone wild, it adds a million.
template <class TallyAt>
abi::TortureCounters TortureSoFar(const abi::TorturePage& page, TallyAt at) {
  constexpr uint32_t kMostTallies = 1'000'000;
  abi::TortureCounters sum = page.counters;
  uint64_t next = page.tallies_gpa;
  for (uint32_t i = 0; i < kMostTallies && next != 0; ++i) {
    const abi::TortureTally* const tally = at(next);
    if (tally == nullptr) break;
    Add(sum, tally->counts);
    next = tally->next_gpa;
  }
  return sum;
}

}  // namespace sipi
