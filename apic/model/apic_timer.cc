// The arithmetic of apic_timer.h (SDM vol 3A, 11.5.4 and 11.5.4.1), which says what is left out.
#include "apic/model/apic_timer.h"

#include <algorithm>
#include <limits>

namespace sipi::apic {
namespace {

constexpr uint64_t kNsPerSecond = 1'000'000'000;
__extension__ typedef unsigned __int128 Wide;

// a * b / c, rounded down or up; saturates.
uint64_t Scale(uint64_t a, uint64_t b, uint64_t c, bool up) {
  const Wide result = (Wide{a} * b + (up ? c - 1 : 0)) / c;
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  return result > kMax ? kMax : static_cast<uint64_t>(result);
}

}  // namespace

uint64_t ApicTimer::BusTicks(uint64_t ns) const {
  return bus_hz_ == kNsPerSecond ? ns : Scale(ns, bus_hz_, kNsPerSecond, false);
}

void ApicTimer::Reset() { *this = ApicTimer(bus_hz_, tsc_hz_); }

void ApicTimer::SetMode(TimerMode mode) {
  const auto counts = [](TimerMode m) {
    return m == TimerMode::kOneShot || m == TimerMode::kPeriodic;
  };
  const bool keeps_counting = counts(mode_) && counts(mode);
  if (mode != mode_ && !keeps_counting) {
    counting_ = false;
    initial_count_ = 0;
    tsc_deadline_ = 0;
  }
  mode_ = mode;
}

void ApicTimer::SetDivide(uint32_t divide_config, Time now) {
  const uint32_t left = CurrentCount(now);
  divide_config_ = divide_config & kTimerDivideWritable;
  if (counting_) expiry_ticks_ = BusTicks(now.ns) + uint64_t{left} * TimerDivisor(divide_config_);
}

void ApicTimer::SetInitialCount(uint32_t count, Time now) {
  if (mode_ == TimerMode::kTscDeadline) return;
  initial_count_ = count;
  counting_ = count != 0 && mode_ != TimerMode::kReserved;
  expiry_ticks_ = BusTicks(now.ns) + PeriodTicks();
}

void ApicTimer::SetTscDeadline(uint64_t deadline) {
  if (mode_ == TimerMode::kTscDeadline) tsc_deadline_ = deadline;
}

void ApicTimer::Restore(uint32_t initial, uint32_t current, Time now) {
  SetInitialCount(initial, now);
  counting_ = counting_ && current != 0;
  if (counting_) {
    expiry_ticks_ = BusTicks(now.ns) + uint64_t{current} * TimerDivisor(divide_config_);
  }
}

uint32_t ApicTimer::CurrentCount(Time now) const {
  const uint64_t ticks = BusTicks(now.ns);
  if (!counting_) return 0;
  if (ticks >= expiry_ticks_) return 0;
  const uint64_t divisor = TimerDivisor(divide_config_);
  const uint64_t left = (expiry_ticks_ - ticks + divisor - 1) / divisor;
  return static_cast<uint32_t>(std::min<uint64_t>(left, std::numeric_limits<uint32_t>::max()));
}

uint64_t ApicTimer::Advance(Time now) {
  if (mode_ == TimerMode::kTscDeadline) {
    // "An interrupt is generated when the TSC equals or exceeds the target value"; the timer then
    // "disarms itself and clears the IA32_TSC_DEADLINE MSR".
    if (tsc_deadline_ == 0 || now.tsc < tsc_deadline_) return 0;
    tsc_deadline_ = 0;
    return 1;
  }
  if (!counting_) return 0;
  const uint64_t ticks = BusTicks(now.ns);
  if (ticks < expiry_ticks_) return 0;
  if (mode_ == TimerMode::kOneShot) {
    counting_ = false;
    return 1;
  }
  const uint64_t period = PeriodTicks();
  const uint64_t expiries = (ticks - expiry_ticks_) / period + 1;
  expiry_ticks_ += expiries * period;
  return expiries;
}

std::optional<uint64_t> ApicTimer::NextExpiryNs(Time now) const {
  if (mode_ == TimerMode::kTscDeadline) {
    if (tsc_deadline_ == 0) return std::nullopt;
    if (now.tsc >= tsc_deadline_) return now.ns;
    const uint64_t wait = Scale(tsc_deadline_ - now.tsc, kNsPerSecond, tsc_hz_, true);
    constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
    return wait > kMax - now.ns ? kMax : now.ns + wait;
  }
  if (!counting_) return std::nullopt;
  return bus_hz_ == kNsPerSecond ? expiry_ticks_
                                 : Scale(expiry_ticks_, kNsPerSecond, bus_hz_, true);
}

}  // namespace sipi::apic
