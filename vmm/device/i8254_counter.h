// One counter of an 8254 programmable interval timer: all six modes, binary and BCD, latches.
//
// Source: Intel, 8254 Programmable Interval Timer data sheet (order number 231164), "Mode
// Definitions" and "Operation Common to All Modes". Time is counted in CLK pulses: `now` is the
// number of pulses so far, and never goes back. Nothing ticks: state changes are computed when
// somebody looks. The caller serialises.
//
// Not modelled: what a counter reads or drives before its first control word (here it is as after
// control word 30H); the effect of changing GATE and reading within one CLK period.
#pragma once

#include <cstdint>
#include <optional>

namespace sipi {

class I8254Counter {
 public:
  using Ticks = int64_t;

  // A control word's low six bits: RW, mode, BCD. RW must not be 0 (that is a latch command).
  void WriteControl(uint8_t control, Ticks now);
  // A byte for the count register; the control word says which half it is.
  void WriteCount(uint8_t value, Ticks now);
  // The GATE input.
  void SetGate(bool high, Ticks now);
  bool gate() const { return gate_; }

  // A latch holds what it has until it has been read: the first command counts.
  void LatchCount(Ticks now);
  void LatchStatus(Ticks now);
  // A latched status, else a latched count, else the count as it runs; byte after byte.
  uint8_t Read(Ticks now);

  // The OUT output.
  bool Out(Ticks now) const { return Settled(now).OutAt(now); }
  // The first pulse after `now` at which OUT changes, if nobody writes anything until then.
  std::optional<Ticks> NextEdge(Ticks now) const { return Settled(now).NextEdgeAfter(now); }

 private:
  enum class Access : uint8_t { kLow = 1, kHigh = 2, kBoth = 3 };

  Access access() const { return static_cast<Access>(control_ >> 4); }
  bool bcd() const { return (control_ & 1) != 0; }
  uint32_t Modulus() const { return bcd() ? 10'000 : 65'536; }
  bool IsOneShot() const { return mode_ == 1 || mode_ == 5; }   // GATE triggers
  bool IsPeriodic() const { return mode_ == 2 || mode_ == 3; }  // GATE triggers and disables

  // The state with a count that has become due by `now` in effect.
  I8254Counter Settled(Ticks now) const;
  // Precondition of these: settled at `now`.
  bool Running(Ticks now) const { return counting_ && now >= loaded_at_; }
  Ticks Elapsed(Ticks now) const { return frozen_.value_or(now - loaded_at_); }
  Ticks HighPhase() const { return (count_ + 1) / 2; }  // mode 3
  bool OutAt(Ticks now) const;
  bool OutAfter(Ticks elapsed) const;
  std::optional<Ticks> NextEdgeAfter(Ticks now) const;
  std::optional<Ticks> PulsesToEdge(Ticks elapsed) const;
  uint32_t CountAt(Ticks now) const;
  bool NullCount(Ticks now) const;
  uint16_t Encoded(uint32_t count) const;
  uint32_t Decoded(uint16_t value) const;

  void Stop(Ticks now, bool out);
  void Load(Ticks at, Ticks now);
  void TakeCount(uint16_t value, Ticks now);

  uint8_t control_ = 0x30;
  uint8_t mode_ = 0;
  bool gate_ = true;
  std::optional<uint8_t> low_written_;  // first byte of two
  bool high_read_next_ = false;
  std::optional<uint16_t> latched_count_;
  std::optional<uint8_t> latched_status_;

  bool has_count_ = false;  // since the control word
  Ticks reload_ = 0;        // in the count register, 1 to 65,536
  bool pending_ = false;    // the count register is newer than the counting element
  Ticks pending_at_ = 0;    // when it goes over by itself (modes 2 and 3)
  bool counting_ = false;
  Ticks count_ = 0;              // the counting element started with this,
  Ticks loaded_at_ = 0;          // at this pulse
  std::optional<Ticks> frozen_;  // GATE is low: pulses counted so far (modes 0 and 4)
  uint32_t held_count_ = 0;      // shown while not running
  bool held_out_ = false;
};

}  // namespace sipi
