// CLOCK_MONOTONIC as a number: what timers, sleeps and the PM timer count on.
#pragma once

#include <time.h>

#include <cstdint>

namespace sipi {

// Nanoseconds. Any thread, and signal handlers.
inline uint64_t MonotonicNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

inline timespec TimespecOfNs(uint64_t ns) {
  return {.tv_sec = static_cast<time_t>(ns / 1'000'000'000u),
          .tv_nsec = static_cast<long>(ns % 1'000'000'000u)};
}

}  // namespace sipi
