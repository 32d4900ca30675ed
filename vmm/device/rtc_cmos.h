// A PC's real-time clock and its battery-backed memory: the time of day, and the shutdown byte that
// tells firmware where to go on after a CPU reset.
//
// Source: Motorola, MC146818 data sheet, "Address Map", registers A to D; the shutdown byte (0FH)
// and the century (32H): IBM PC AT Technical Reference, "Real-Time Clock/CMOS RAM". Port 70H
// selects (bit 7 masks NMIs, which does nothing here), 71H is data. The caller serialises.
//
// Not modelled: alarms, periodic and update interrupts (register C reads 0), setting the time
// (writes to it are ignored), an update in progress (register A bit 7 reads 0, a time read byte by
// byte may straddle a second), checksums.
#pragma once

#include <array>
#include <cstdint>

namespace sipi {

class RtcCmos {
 public:
  static constexpr bool Claims(uint16_t port) { return port == kIndex || port == kData; }

  // `unix_seconds` is the time of day that the clock shows, in UTC.
  uint32_t Read(uint16_t port, uint32_t size, int64_t unix_seconds) const;
  void Write(uint16_t port, uint32_t size, uint32_t value);

  // 0AH: after a CPU reset, firmware jumps to the far address at 40H:67H without further ado.
  static constexpr uint8_t kJumpToResumeVector = 0x0a;
  uint8_t shutdown_byte() const { return memory_[kShutdown]; }

 private:
  static constexpr uint16_t kIndex = 0x70;
  static constexpr uint16_t kData = 0x71;
  static constexpr uint8_t kShutdown = 0x0f;

  uint8_t ReadRegister(uint8_t index, int64_t unix_seconds) const;
  uint8_t ReadTime(uint8_t index, int64_t unix_seconds) const;

  uint8_t index_ = 0;
  std::array<uint8_t, 128> memory_ = MakeMemory();

  static std::array<uint8_t, 128> MakeMemory();
};

}  // namespace sipi
