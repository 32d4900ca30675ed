// The host's time-stamp counter: the clock of the timeline (its rate comes from KVM_GET_TSC_KHZ).
#pragma once

#include <x86intrin.h>

#include <cstdint>

namespace sipi {

// Reads the TSC. Not ordered against the instructions around it (SDM vol 2B, RDTSC): events that
// are some 20 ns apart may swap, which a timeline in microseconds does not show.
inline uint64_t ReadTsc() { return __rdtsc(); }

// TSC ticks as nanoseconds. Precondition: khz is not 0.
constexpr int64_t TscTicksToNs(int64_t ticks, uint32_t khz) {
  // In two parts, since ticks * 10^6 leaves 64 bits after an hour.
  const int64_t whole = ticks / khz;
  const int64_t rest = ticks % khz;
  return whole * 1'000'000 + rest * 1'000'000 / khz;
}

// Nanoseconds as TSC ticks.
constexpr uint64_t NsToTscTicks(uint64_t ns, uint32_t khz) {
  return ns / 1'000'000 * khz + ns % 1'000'000 * khz / 1'000'000;
}

}  // namespace sipi
