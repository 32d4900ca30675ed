#include "vmm/device/i8254_counter.h"

namespace sipi {
namespace {

constexpr uint8_t kStatusOut = 0x80;
constexpr uint8_t kStatusNullCount = 0x40;

}  // namespace

// "Operation Common to All Modes": a control word resets the counter's logic at once.
void I8254Counter::WriteControl(uint8_t control, Ticks now) {
  *this = Settled(now);
  held_count_ = CountAt(now);
  control_ = control & 0x3f;
  const uint8_t mode = control >> 1 & 7;
  mode_ = mode >= 6 ? mode - 4 : mode;  // X10 is mode 2, X11 mode 3
  held_out_ = mode_ != 0;
  counting_ = false;
  frozen_.reset();
  has_count_ = false;
  pending_ = false;
  low_written_.reset();
  high_read_next_ = false;
  latched_count_.reset();
  latched_status_.reset();
}

void I8254Counter::WriteCount(uint8_t value, Ticks now) {
  *this = Settled(now);
  if (access() == Access::kLow) {
    TakeCount(value, now);
  } else if (access() == Access::kHigh) {
    TakeCount(static_cast<uint16_t>(value << 8), now);
  } else if (low_written_.has_value()) {
    const uint8_t low = *low_written_;
    low_written_.reset();
    TakeCount(static_cast<uint16_t>(value << 8 | low), now);
  } else {
    low_written_ = value;
    // Mode 0: the first byte disables counting and sets OUT low at once.
    if (mode_ == 0) Stop(now, false);
  }
}

// "Mode Definitions", what each says about writing a (new) count.
void I8254Counter::TakeCount(uint16_t value, Ticks now) {
  const uint32_t count = Decoded(value);
  reload_ = count == 0 ? Ticks{Modulus()} : Ticks{count};
  const bool first = !has_count_;
  has_count_ = true;
  if (IsOneShot()) {
    pending_ = true;  // until the next trigger
    return;
  }
  if (!IsPeriodic()) {
    if (mode_ == 0) Stop(now, false);
    Load(now + 1, now);
    return;
  }
  if (first) {
    Load(now + 1, now);
    if (!gate_) Stop(now + 1, true);
    return;
  }
  if (!gate_) {
    pending_ = true;  // until the next trigger
    return;
  }
  if (!Running(now)) {
    Load(loaded_at_, now);
    return;
  }
  // The current cycle (mode 2) or half-cycle (mode 3) ends first.
  const Ticks phase = Elapsed(now) % count_;
  const Ticks end = mode_ == 3 && phase < HighPhase() ? HighPhase() : count_;
  pending_ = true;
  pending_at_ = now + (end - phase);
}

void I8254Counter::Stop(Ticks now, bool out) {
  held_count_ = CountAt(now);
  held_out_ = out;
  counting_ = false;
  frozen_.reset();
}

// The count register goes to the counting element with pulse `at`.
void I8254Counter::Load(Ticks at, Ticks now) {
  held_count_ = CountAt(now);
  held_out_ = OutAt(now);
  count_ = reload_;
  loaded_at_ = at;
  pending_ = false;
  counting_ = true;
  frozen_.reset();
  if (!gate_ && (mode_ == 0 || mode_ == 4)) frozen_ = 0;
}

// "Gate Pin Operations Summary".
void I8254Counter::SetGate(bool high, Ticks now) {
  *this = Settled(now);
  if (high == gate_) return;
  gate_ = high;
  if (!has_count_) return;
  if (IsOneShot()) {
    if (high) Load(now + 1, now);
  } else if (IsPeriodic()) {
    if (high) {
      Load(now + 1, now);
    } else {
      Stop(now, true);
    }
  } else if (counting_ && high) {
    if (now >= loaded_at_) loaded_at_ = now - frozen_.value_or(0);
    frozen_.reset();
  } else if (counting_) {
    frozen_ = now >= loaded_at_ ? now - loaded_at_ : 0;
  }
}

I8254Counter I8254Counter::Settled(Ticks now) const {
  I8254Counter state = *this;
  if (!pending_ || !IsPeriodic() || !counting_ || now < pending_at_) return state;
  const bool into_low_half =
      mode_ == 3 && (pending_at_ - loaded_at_) % count_ == HighPhase() % count_ && count_ > 1;
  state.count_ = reload_;
  state.loaded_at_ = pending_at_ - (into_low_half ? state.HighPhase() : 0);
  state.pending_ = false;
  return state;
}

bool I8254Counter::OutAt(Ticks now) const {
  return Running(now) ? OutAfter(Elapsed(now)) : held_out_;
}

// OUT when so many pulses have passed since the count was loaded.
bool I8254Counter::OutAfter(Ticks elapsed) const {
  switch (mode_) {
    case 0:
    case 1:
      return elapsed >= count_;
    case 2:
      return elapsed % count_ != count_ - 1;
    case 3:
      return elapsed % count_ < HighPhase();
    default:
      return elapsed != count_;
  }
}

std::optional<I8254Counter::Ticks> I8254Counter::NextEdgeAfter(Ticks now) const {
  if (!counting_) return std::nullopt;
  if (now < loaded_at_) {
    if (OutAfter(frozen_.value_or(0)) != held_out_) return loaded_at_;
    return NextEdgeAfter(loaded_at_);
  }
  if (frozen_.has_value()) return std::nullopt;
  const std::optional<Ticks> pulses = PulsesToEdge(Elapsed(now));
  if (pulses.has_value()) return now + *pulses;
  // Only a count of 1 has no edge; a new count may end that.
  if (!pending_ || !IsPeriodic()) return std::nullopt;
  const I8254Counter then = Settled(pending_at_);
  if (then.OutAt(pending_at_) != OutAt(now)) return pending_at_;
  return then.NextEdgeAfter(pending_at_);
}

std::optional<I8254Counter::Ticks> I8254Counter::PulsesToEdge(Ticks elapsed) const {
  if (IsPeriodic()) {
    if (count_ == 1) return std::nullopt;
    const Ticks phase = elapsed % count_;
    const Ticks first = mode_ == 2 ? count_ - 1 : HighPhase();
    return phase < first ? first - phase : count_ - phase;
  }
  if (elapsed < count_) return count_ - elapsed;
  if (mode_ >= 4 && elapsed == count_) return 1;  // the strobe is one pulse long
  return std::nullopt;
}

uint32_t I8254Counter::CountAt(Ticks now) const {
  if (!Running(now)) return held_count_;
  const Ticks modulus = Modulus();
  const Ticks elapsed = Elapsed(now);
  if (mode_ == 2) return static_cast<uint32_t>((count_ - elapsed % count_) % modulus);
  if (mode_ == 3) {
    // Two per pulse, from the count made even, in either half.
    const Ticks phase = elapsed % count_;
    const Ticks in_half = phase < HighPhase() ? phase : phase - HighPhase();
    return static_cast<uint32_t>(((count_ & ~Ticks{1}) - 2 * in_half) % modulus);
  }
  // Modes 0, 1, 4, 5 wrap around and count on.
  const Ticks left = (count_ - elapsed) % modulus;
  return static_cast<uint32_t>(left < 0 ? left + modulus : left);
}

// "Read-Back Command": whether the last count written has not reached the counting element yet.
bool I8254Counter::NullCount(Ticks now) const {
  return !has_count_ || pending_ || (counting_ && now < loaded_at_);
}

void I8254Counter::LatchCount(Ticks now) {
  if (latched_count_.has_value()) return;
  latched_count_ = Encoded(Settled(now).CountAt(now));
}

void I8254Counter::LatchStatus(Ticks now) {
  if (latched_status_.has_value()) return;
  const I8254Counter state = Settled(now);
  latched_status_ = static_cast<uint8_t>(control_ | (state.OutAt(now) ? kStatusOut : 0) |
                                         (state.NullCount(now) ? kStatusNullCount : 0));
}

uint8_t I8254Counter::Read(Ticks now) {
  if (latched_status_.has_value()) {
    const uint8_t status = *latched_status_;
    latched_status_.reset();
    return status;
  }
  const uint16_t count =
      latched_count_.has_value() ? *latched_count_ : Encoded(Settled(now).CountAt(now));
  const bool high = access() == Access::kHigh || (access() == Access::kBoth && high_read_next_);
  const bool last = access() != Access::kBoth || high;
  high_read_next_ = !last;
  if (last) latched_count_.reset();
  return static_cast<uint8_t>(high ? count >> 8 : count);
}

uint16_t I8254Counter::Encoded(uint32_t count) const {
  if (!bcd()) return static_cast<uint16_t>(count);
  return static_cast<uint16_t>(count / 1000 % 10 << 12 | count / 100 % 10 << 8 |
                               count / 10 % 10 << 4 | count % 10);
}

uint32_t I8254Counter::Decoded(uint16_t value) const {
  if (!bcd()) return value;
  return (value >> 12) * 1000u + (value >> 8 & 15) * 100u + (value >> 4 & 15) * 10u + (value & 15);
}

}  // namespace sipi
