// The ACPI power management timer: the reference clock that the guest calibrates against.
// Source: ACPI 6.5, 4.8.3.3 "Power Management Timer (PM_TMR)": 3.579545 MHz, here 24 bits wide.
#pragma once

#include <cstdint>

namespace sipi {

inline constexpr uint64_t kPmTimerHz = 3'579'545;
inline constexpr uint32_t kPmTimerMask = 0x00ff'ffff;

// The counter's value at `ns` on any monotonic clock. Any thread.
constexpr uint32_t PmTimerAt(uint64_t ns) {
  constexpr uint64_t kNsPerSecond = 1'000'000'000;
  // In two parts, since ns * 3579545 leaves 64 bits after an hour and a half.
  const uint64_t ticks =
      ns / kNsPerSecond * kPmTimerHz + ns % kNsPerSecond * kPmTimerHz / kNsPerSecond;
  return static_cast<uint32_t>(ticks) & kPmTimerMask;
}

}  // namespace sipi
