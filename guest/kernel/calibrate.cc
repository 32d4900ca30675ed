// A sample lasts one window. Its two ends are readings of the reference clock, each bracketed by
// two readings of the TSC; the window itself is spent halted, with the local APIC timer in periodic
// mode as the alarm clock, so that a calibrating CPU costs nothing. What the timer has counted is
// its whole periods plus what the current count shows, so a late wake-up does no harm. A sample
// whose brackets are wide (somebody took the CPU away) is rejected.
#include "guest/kernel/calibrate.h"

#include "guest/kernel/apic.h"

namespace sipi {
namespace {

using abi::TraceEvent;
using apic::Reg;

constexpr uint64_t kPmTimerHz = 3579545;  // ACPI 6.5, 4.8.3.3
constexpr uint32_t kPmTimerMask = 0xffffff;
constexpr uint32_t kMaxTries = 5;
constexpr uint32_t kMaxBracketShare = 8;  // brackets may take 1/8 of the window
// The divide register is left as INIT leaves it, at 0: divide by 2 (SDM vol 3A, 11.4.7.3 and figure
// 11-10).
constexpr uint32_t kDivisor = 2;

struct Reading {
  uint64_t tsc = 0;      // middle of the bracket
  uint64_t bracket = 0;  // its width in ticks
  uint32_t pm = 0;
};

Reading ReadBoth() {
  Reading r;
  const uint64_t before = platform::NowTicks();
  r.pm = platform::ReadPmTimer();
  const uint64_t after = platform::NowTicks();
  r.bracket = after - before;
  r.tsc = before + r.bracket / 2;
  return r;
}

struct Sample {
  uint32_t tsc_khz = 0;
  uint32_t bus_khz = 0;
  uint64_t bracket_ticks = ~uint64_t{0};
  bool good = false;
};

uint32_t PmTicksOfUs(uint64_t us) { return static_cast<uint32_t>(us * kPmTimerHz / 1000000 + 1); }

// Ticks of a clock over `pm` reference ticks, as kHz.
uint32_t Khz(uint64_t ticks, uint32_t pm) {
  return static_cast<uint32_t>(ticks * (kPmTimerHz / 1000) / (pm == 0 ? 1 : pm));
}

// A first idea of the timer's frequency, within a few percent: counts down over a tenth of the
// window.
uint32_t GuessBusKhz(uint32_t window_us) {
  platform::ApicWrite(Reg::kTimerInitial, 0xffffffff);
  const uint32_t pm_begin = platform::ReadPmTimer();
  const uint32_t count_begin = platform::ApicRead(Reg::kTimerCurrent);
  platform::WaitPmTicks(pm_begin, PmTicksOfUs(window_us / 10 + 20));
  const uint32_t count_end = platform::ApicRead(Reg::kTimerCurrent);
  const uint32_t pm_end = platform::ReadPmTimer();
  platform::ApicWrite(Reg::kTimerInitial, 0);
  return Khz(uint64_t{count_begin - count_end} * kDivisor, (pm_end - pm_begin) & kPmTimerMask);
}

// One window. `guess_khz` only says how long to sleep.
Sample TakeSample(PerCpu& self, uint32_t window_us, uint32_t guess_khz) {
  const uint64_t period = uint64_t{guess_khz / kDivisor} * window_us / 1000 + 1;
  self.timer_armed_ticks = 0;
  self.timer_fired = 0;
  self.timer_mask_when_fired = apic::kLvtTimerPeriodic | apic::kLvtMasked | abi::kTimerVector;
  platform::ApicWrite(Reg::kLvtTimer, apic::kLvtTimerPeriodic | abi::kTimerVector);
  const Reading begin = ReadBoth();
  platform::ApicWrite(Reg::kTimerInitial, static_cast<uint32_t>(period));
  platform::IrqDisable();
  while (self.timer_fired == 0) platform::HaltEnabled();
  const uint32_t current = platform::ApicRead(Reg::kTimerCurrent);
  const Reading end = ReadBoth();
  platform::ApicWrite(Reg::kTimerInitial, 0);  // stopped
  self.timer_mask_when_fired = 0;

  const uint32_t pm = (end.pm - begin.pm) & kPmTimerMask;
  const uint64_t partial = period - current;
  const uint64_t expected = uint64_t{guess_khz / kDivisor} * pm / (kPmTimerHz / 1000);
  const uint64_t periods = expected > partial ? (expected - partial + period / 2) / period : 0;
  Sample sample;
  sample.tsc_khz = Khz(end.tsc - begin.tsc, pm);
  sample.bus_khz = Khz((periods * period + partial) * kDivisor, pm);
  sample.bracket_ticks = begin.bracket + end.bracket;
  sample.good = sample.bracket_ticks * kMaxBracketShare <= end.tsc - begin.tsc;
  return sample;
}

// Takes samples until one is good, or the best of kMaxTries. Leaves interrupts as they were.
Sample Calibrate(PerCpu& self, uint32_t guess_khz) {
  const uint32_t window_us = self.kernel->knobs().calibration_us;
  const bool irqs = platform::IrqsEnabled();
  platform::Trace(TraceEvent::kCalibrateBegin, 0, window_us);
  Sample best;
  for (uint32_t i = 0; i < kMaxTries && !best.good; ++i) {
    const Sample sample = TakeSample(self, window_us, guess_khz);
    if (!sample.good) {
      const uint64_t ns =
          sample.bracket_ticks * 1000000 / (sample.tsc_khz == 0 ? 1 : sample.tsc_khz);
      platform::Trace(TraceEvent::kCalibrateRejected, 0, static_cast<uint32_t>(ns));
    }
    if (sample.good || sample.bracket_ticks < best.bracket_ticks) best = sample;
  }
  platform::Trace(TraceEvent::kCalibrateEnd, 0, best.tsc_khz);
  if (irqs) platform::IrqEnable();
  return best;
}

void Keep(PerCpu& self, uint32_t tsc_khz, uint32_t bus_khz) {
  self.slot->tsc_khz = tsc_khz;
  self.slot->bus_khz = bus_khz;
}

// The word in which the reuse scope's first calibrated CPU leaves its number + 1; null: nobody
// shares with this CPU.
uint32_t* ScopeWord(PerCpu& self) {
  Kernel& kernel = *self.kernel;
  const abi::CpuEntry& entry = kernel.entry(self.cpu);
  switch (kernel.knobs().reuse_scope) {
    case abi::ReuseScope::kCore:
      return &kernel.slots[entry.core].core_calibrated_by;
    case abi::ReuseScope::kPackage:
      return &kernel.slots[entry.package].package_calibrated_by;
    default:
      return nullptr;
  }
}

// The CPU whose calibration this one may take over, or itself.
CpuNumber Donor(PerCpu& self) {
  Kernel& kernel = *self.kernel;
  if (!kernel.reuse_calibration || kernel.knobs().reuse_scope == abi::ReuseScope::kCpu)
    return self.cpu;
  if (kernel.knobs().reuse_scope == abi::ReuseScope::kMachine) return kBootCpu;
  const uint32_t by =
      platform::AtomicRef<uint32_t>(*ScopeWord(self)).Load(std::memory_order_acquire);
  return by == 0 ? self.cpu : CpuNumber(by - 1);
}

void OfferToScope(PerCpu& self) {
  uint32_t* word = ScopeWord(self);
  if (word == nullptr) return;
  uint32_t none = 0;
  (void)platform::AtomicRef<uint32_t>(*word).CompareExchange(none, self.cpu.value + 1,
                                                             std::memory_order_seq_cst);
}

}  // namespace

void CalibrateBootCpu(PerCpu& self) {
  Kernel& kernel = *self.kernel;
  const abi::BootParams& params = *kernel.params;
  if (params.pm_timer_port == 0) {
    // The VMM vouches for the TSC's frequency; the bus is measured against it, where the timer
    // needs it.
    platform::SetTicksPerMs(params.tsc_khz);
    Keep(self, params.tsc_khz, kernel.tsc_deadline ? 0 : platform::MeasureBusKhz(params.tsc_khz));
  } else {
    const Sample sample = Calibrate(self, GuessBusKhz(params.knobs.calibration_us));
    SIPI_ASSERT(sample.tsc_khz != 0 && sample.bus_khz != 0);
    platform::SetTicksPerMs(sample.tsc_khz);
    Keep(self, sample.tsc_khz, sample.bus_khz);
  }
  kernel.result->boot_tsc_khz = self.slot->tsc_khz;
  kernel.result->boot_bus_khz = self.slot->bus_khz;
  kernel.boot_calibrated = true;
  OfferToScope(self);
}

Error StartTimers(PerCpu& self, CpuNumber) {
  Kernel& kernel = *self.kernel;
  const CpuNumber donor = Donor(self);
  if (donor != self.cpu || kernel.params->pm_timer_port == 0) {
    const abi::CpuSlot& slot = kernel.slot(donor == self.cpu ? kBootCpu : donor);
    Keep(self, slot.tsc_khz, slot.bus_khz);
    platform::Trace(TraceEvent::kCalibrateReused, static_cast<uint16_t>(donor.value), slot.tsc_khz);
    return Error::kNone;
  }
  const Sample sample = Calibrate(self, kernel.slot(kBootCpu).bus_khz);
  Keep(self, sample.tsc_khz, sample.bus_khz);
  OfferToScope(self);
  return Error::kNone;
}

}  // namespace sipi
