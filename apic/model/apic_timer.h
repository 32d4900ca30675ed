// The local APIC timer: a count-down on the bus clock, or a deadline on the TSC.
//
// Source: SDM vol 3A, 11.5.4 "APIC Timer" and 11.5.4.1 "TSC-Deadline Mode". It counts expiries and
// knows nothing of vectors: LocalApic takes them through the LVT.
//
// Where the SDM is silent or was wrong:
// - A change between one-shot and periodic mode leaves the count running. 11.5.4.1 has every change
//   of mode disarm the timer; hardware and KVM do so only to or from TSC-deadline mode, which
//   kvm-unit-tests insists on. Then the initial count becomes 0 too.
// - A change of the divisor keeps the current count and goes on from there at the new rate.
// - Timer mode 3 is reserved: nothing ever expires.
// Not modelled: power states that stop the timer (ARAT = 0), a lower bound on a guest's period.
#pragma once

#include <cstdint>
#include <optional>

#include "apic/model/time.h"
#include "apic/regs/lvt.h"
#include "apic/regs/timer.h"

namespace sipi::apic {

class ApicTimer {
 public:
  // Preconditions: 0 < bus_hz <= 8 GHz, 0 < tsc_hz; Time::ns stays below 2^60 (36 years).
  ApicTimer(uint64_t bus_hz, uint64_t tsc_hz) : bus_hz_(bus_hz), tsc_hz_(tsc_hz) {}

  // Back to the state after power-up and INIT: one-shot, divided by 2, stopped.
  void Reset();

  // The setters want Advance(now) first: what expired before the change must not get lost.
  void SetMode(TimerMode mode);
  void SetDivide(uint32_t divide_config, Time now);
  void SetInitialCount(uint32_t count, Time now);  // ignored in TSC-deadline mode
  void SetTscDeadline(uint64_t deadline);          // ignored in the other modes; 0 disarms
  // For restoring a saved register page: counts down from `current`, reloads with `initial`.
  void Restore(uint32_t initial, uint32_t current, Time now);

  TimerMode mode() const { return mode_; }
  uint32_t divide_config() const { return divide_config_; }
  uint32_t initial_count() const { return initial_count_; }
  uint32_t CurrentCount(Time now) const;  // 0 in TSC-deadline mode
  uint64_t tsc_deadline() const { return tsc_deadline_; }

  // The number of expiries up to `now` since the last call.
  uint64_t Advance(Time now);

  // When Advance() will next return more than 0, on the clock of Time::ns; rounded up.
  std::optional<uint64_t> NextExpiryNs(Time now) const;

 private:
  uint64_t BusTicks(uint64_t ns) const;
  uint64_t PeriodTicks() const { return uint64_t{initial_count_} * TimerDivisor(divide_config_); }

  uint64_t bus_hz_;
  uint64_t tsc_hz_;
  TimerMode mode_ = TimerMode::kOneShot;
  uint32_t divide_config_ = 0;
  uint32_t initial_count_ = 0;
  bool counting_ = false;      // one-shot and periodic: is there an expiry to come?
  uint64_t expiry_ticks_ = 0;  // if so, when, in undivided bus ticks since Time::ns 0
  uint64_t tsc_deadline_ = 0;  // IA32_TSC_DEADLINE; 0 = disarmed
};

}  // namespace sipi::apic
