// An 8254 counter that is clocked pulse by pulse, written from the data sheet's mode definitions
// without regard for speed: what the computed one (vmm/device/i8254_counter.h) must agree with.
#pragma once

#include <cstdint>

namespace sipi {

class Clocked8254 {
 public:
  void WriteMode(int mode) {
    mode_ = mode;
    out_ = mode != 0;
    has_count_ = load_ = counting_ = strobe_due_ = false;
  }

  void WriteCount(uint32_t count) {
    register_ = count;
    const bool first = !has_count_;
    has_count_ = true;
    if (mode_ == 0) {
      out_ = false;
      counting_ = false;
    }
    const bool by_trigger = mode_ == 1 || mode_ == 5;
    const bool at_end_of_cycle = (mode_ == 2 || mode_ == 3) && !first;
    if (!by_trigger && !at_end_of_cycle) load_ = true;
  }

  void SetGate(bool high) {
    const bool rising = high && !gate_;
    gate_ = high;
    if (mode_ == 2 || mode_ == 3) {
      if (!high) {
        out_ = true;
        counting_ = false;
      }
      if (rising && has_count_) load_ = true;
    }
    if ((mode_ == 1 || mode_ == 5) && rising && has_count_) load_ = true;
  }

  void Clock() {
    if (load_) {
      Load();
      return;
    }
    if (!counting_ || (!gate_ && mode_ != 1 && mode_ != 5)) return;
    switch (mode_) {
      case 2:
        if (element_ == 1) {
          Reload(true);
        } else if (--element_ == 1) {
          out_ = false;
        }
        return;
      case 3:
        ClockSquareWave();
        return;
      default:
        element_ = (element_ + 0xffff) & 0xffff;
        if (mode_ <= 1 && element_ == 0) out_ = true;
        if (mode_ >= 4) {
          out_ = !(strobe_due_ && element_ == 0);
          if (element_ == 0) strobe_due_ = false;
        }
    }
  }

  bool out() const { return out_; }
  uint32_t count() const { return element_ & 0xffff; }

 private:
  void Load() {
    load_ = false;
    counting_ = gate_ || (mode_ != 2 && mode_ != 3);
    strobe_due_ = true;
    if (mode_ == 1) out_ = false;
    if (mode_ == 4 || mode_ == 5) out_ = true;
    if (mode_ == 2 || mode_ == 3) {
      Reload(true);
    } else {
      element_ = register_;
    }
  }

  void Reload(bool out) {
    out_ = out;
    odd_ = mode_ == 3 && (register_ & 1) != 0;
    element_ = mode_ == 3 ? register_ & ~1u : register_;
  }

  // With an odd count the high half is one pulse longer.
  void ClockSquareWave() {
    const bool expired = odd_ && out_ ? element_ == 0 : element_ == 2;
    if (expired) {
      Reload(!out_);
    } else {
      element_ -= 2;
    }
  }

  int mode_ = 0;
  bool gate_ = true;
  bool out_ = false;
  bool has_count_ = false;
  bool load_ = false;
  bool counting_ = false;
  bool strobe_due_ = false;
  bool odd_ = false;
  uint32_t register_ = 0;
  uint32_t element_ = 0;
};

}  // namespace sipi
