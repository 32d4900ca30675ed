// The APIC timer's divide configuration register. Freestanding.
//
// Source: SDM vol 3A, 11.5.4 "APIC Timer", figure 11-10: bits 0, 1 and 3 hold the divisor's code.
// What the timer does with it: apic/model/apic_timer.h.
#pragma once

#include <cstdint>

namespace sipi::apic {

inline constexpr uint32_t kTimerDivideWritable = 0xb;
inline constexpr uint32_t kTimerDivideBy1 = 0xb;
inline constexpr uint32_t kTimerDivideBy16 = 0x3;

// 000 -> 2, 001 -> 4, ... 110 -> 128, 111 -> 1.
constexpr uint32_t TimerDivisor(uint32_t divide_config) {
  const uint32_t code = (divide_config & 3) | (divide_config >> 1 & 4);
  return 1u << ((code + 1) & 7);
}

static_assert(TimerDivisor(0x0) == 2 && TimerDivisor(0x3) == 16);
static_assert(TimerDivisor(0x8) == 32 && TimerDivisor(0xa) == 128 && TimerDivisor(0xb) == 1);

}  // namespace sipi::apic
