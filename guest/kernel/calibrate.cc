// Calibration compares three clocks over one window: the TSC, the local APIC timer, and the
// reference clock. Every reading of a slow clock is bracketed by two readings of the TSC and counts
// for the middle of its bracket. A sample whose brackets are wide (somebody took the CPU away) is
// rejected and taken again.
//
// The boot CPU polls the reference clock through its window. An AP, which knows about how fast its
// timer runs, sleeps through it, with the timer in periodic mode as alarm clock, so that any number
// of CPUs can calibrate at once. What the timer has counted is its whole periods plus what the
// current count shows, so a late wake-up does no harm. The first alarm masks the timer, which
// counts on: on an overcommitted host a timer that kept firing would interrupt a CPU more often
// than it gets to run.
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

// A slow clock's value and when it was read.
struct Reading {
  uint32_t value = 0;
  uint64_t tsc = 0;      // middle of the bracket
  uint64_t bracket = 0;  // its width in TSC ticks
};

template <class Access>
Reading Bracketed(Access access) {
  Reading r;
  const uint64_t before = platform::NowTicks();
  r.value = access();
  r.bracket = platform::NowTicks() - before;
  r.tsc = before + r.bracket / 2;
  return r;
}

Reading ReadReference() {
  return Bracketed([] { return platform::ReadPmTimer(); });
}
Reading ReadCount() {
  return Bracketed([] { return platform::ApicRead(Reg::kTimerCurrent); });
}

struct Sample {
  uint32_t tsc_khz = 0;
  uint32_t bus_khz = 0;
  uint64_t bracket_ticks = ~uint64_t{0};
  bool good = false;
};

uint32_t PmTicksOfUs(uint64_t us) { return static_cast<uint32_t>(us * kPmTimerHz / 1000000 + 1); }

// What two readings of each clock say. `counted` are timer ticks after the divider.
Sample Evaluate(const Reading& pm_begin, const Reading& pm_end, const Reading& count_begin,
                const Reading& count_end, uint64_t counted, uint32_t window_us) {
  Sample sample;
  const uint32_t pm = (pm_end.value - pm_begin.value) & kPmTimerMask;
  const uint64_t tsc_of_pm = pm_end.tsc - pm_begin.tsc,
                 tsc_of_count = count_end.tsc - count_begin.tsc;
  // A window that was too short: an alarm left over from the sample before.
  if (pm < PmTicksOfUs(window_us) / 2 || tsc_of_count == 0) return sample;
  sample.tsc_khz = static_cast<uint32_t>(tsc_of_pm * kPmTimerHz / 1000 / pm);
  sample.bus_khz = static_cast<uint32_t>(counted * kDivisor * sample.tsc_khz / tsc_of_count);
  sample.bracket_ticks =
      pm_begin.bracket + pm_end.bracket + count_begin.bracket + count_end.bracket;
  sample.good = sample.bracket_ticks * kMaxBracketShare <= tsc_of_pm;
  return sample;
}

// The boot CPU's: polls, with the timer masked.
Sample PollWindow(PerCpu&, uint32_t window_us) {
  platform::ApicWrite(Reg::kTimerInitial, 0xffffffff);
  const Reading count_begin = ReadCount();
  const Reading pm_begin = ReadReference();
  platform::WaitPmTicks(pm_begin.value, PmTicksOfUs(window_us));
  const Reading pm_end = ReadReference();
  const Reading count_end = ReadCount();
  platform::ApicWrite(Reg::kTimerInitial, 0);
  return Evaluate(pm_begin, pm_end, count_begin, count_end, count_begin.value - count_end.value,
                  window_us);
}

// An AP's: sleeps. The boot CPU's frequencies say how long, and how many whole periods have gone
// by.
Sample SleepWindow(PerCpu& self, uint32_t window_us) {
  const abi::CpuSlot& boot = self.kernel->slot(kBootCpu);
  const uint64_t guess_khz = boot.bus_khz / kDivisor;
  const uint64_t period = guess_khz * window_us / 1000 + 1;
  self.timer_armed_ticks = 0;
  self.timer_fired = 0;
  self.timer_mask_when_fired = apic::kLvtTimerPeriodic | apic::kLvtMasked | abi::kTimerVector;
  platform::ApicWrite(Reg::kLvtTimer, apic::kLvtTimerPeriodic | abi::kTimerVector);
  const Reading pm_begin = ReadReference();
  const Reading count_begin = Bracketed([period] {
    platform::ApicWrite(Reg::kTimerInitial, static_cast<uint32_t>(period));
    return static_cast<uint32_t>(period);
  });
  while (self.timer_fired == 0) platform::HaltEnabled();
  const Reading count_end = ReadCount();
  const Reading pm_end = ReadReference();
  platform::ApicWrite(Reg::kTimerInitial, 0);  // stopped
  self.timer_mask_when_fired = 0;

  const uint64_t partial = period - count_end.value;
  const uint64_t expected = guess_khz * (count_end.tsc - count_begin.tsc) / boot.tsc_khz;
  const uint64_t periods = expected > partial ? (expected - partial + period / 2) / period : 0;
  return Evaluate(pm_begin, pm_end, count_begin, count_end, periods * period + partial, window_us);
}

// An AP's where there is TSC-deadline mode.
Sample SleepToDeadline(PerCpu& self, uint32_t window_us) {
  const abi::CpuSlot& boot = self.kernel->slot(kBootCpu);
  self.timer_armed_ticks = 0;
  self.timer_fired = 0;
  const Reading pm_begin = ReadReference();
  ArmTimer(self, platform::DeadlineInUs(window_us));
  while (self.timer_fired == 0) platform::HaltEnabled();
  const Reading pm_end = ReadReference();
  // The timer's side of the comparison is the TSC against itself: no bracket, and the boot CPU's
  // bus.
  const Reading none_begin{0, pm_begin.tsc, 0}, none_end{0, pm_end.tsc, 0};
  Sample sample = Evaluate(pm_begin, pm_end, none_begin, none_end, 0, window_us);
  sample.bus_khz = boot.bus_khz;
  return sample;
}

// Takes samples until one is good, or the best of kMaxTries. Interrupts off.
Sample Calibrate(PerCpu& self, Sample (*take)(PerCpu&, uint32_t)) {
  const uint32_t window_us = self.kernel->knobs().calibration_us;
  platform::Trace(TraceEvent::kCalibrateBegin, 0, window_us);
  Sample best;
  for (uint32_t i = 0; i < kMaxTries && !best.good; ++i) {
    const Sample sample = take(self, window_us);
    if (!sample.good) {
      const uint64_t us = sample.tsc_khz == 0 ? 0 : sample.bracket_ticks * 1000 / sample.tsc_khz;
      platform::Trace(TraceEvent::kCalibrateRejected, 0, static_cast<uint32_t>(us));
    }
    if (sample.good || sample.bracket_ticks < best.bracket_ticks) best = sample;
  }
  platform::Trace(TraceEvent::kCalibrateEnd, 0, best.tsc_khz);
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
    const bool irqs = platform::IrqsEnabled();  // "+overlap" comes here with interrupts on
    platform::IrqDisable();
    const Sample sample = Calibrate(self, PollWindow);
    if (irqs) platform::IrqEnable();
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
  const Sample sample = Calibrate(self, kernel.tsc_deadline ? SleepToDeadline : SleepWindow);
  if (sample.tsc_khz ==
      0) {  // no window that was long enough: better the boot CPU's figures than none
    Keep(self, kernel.slot(kBootCpu).tsc_khz, kernel.slot(kBootCpu).bus_khz);
    return Error::kNone;
  }
  Keep(self, sample.tsc_khz, sample.bus_khz);
  OfferToScope(self);
  return Error::kNone;
}

}  // namespace sipi
