#include "vmm/device/rtc_cmos.h"

#include <time.h>

#include "vmm/device/port_access.h"

namespace sipi {
namespace {

enum Register : uint8_t {
  kSeconds = 0x00,
  kMinutes = 0x02,
  kHours = 0x04,
  kWeekday = 0x06,
  kDay = 0x07,
  kMonth = 0x08,
  kYear = 0x09,
  kA = 0x0a,
  kB = 0x0b,
  kC = 0x0c,
  kD = 0x0d,
  kCentury = 0x32,
};

constexpr uint8_t kDivider32Khz = 0x26;  // A: 32.768 kHz, periodic rate 1024 Hz
constexpr uint8_t kHours24 = 0x02;       // B
constexpr uint8_t kBinary = 0x04;        // B: not BCD
constexpr uint8_t kAmPm = 0x80;          // of the hours, in 12-hour mode
constexpr uint8_t kValidRam = 0x80;      // D
constexpr uint8_t kUpdateInProgress = 0x80;

}  // namespace

std::array<uint8_t, 128> RtcCmos::MakeMemory() {
  std::array<uint8_t, 128> memory = {};
  memory[kA] = kDivider32Khz;
  memory[kB] = kHours24;
  return memory;
}

uint32_t RtcCmos::Read(uint16_t port, uint32_t size, int64_t unix_seconds) const {
  if (size != 1 || port != kData) return FloatingBus(size);
  return ReadRegister(index_, unix_seconds);
}

uint8_t RtcCmos::ReadRegister(uint8_t index, int64_t unix_seconds) const {
  switch (index) {
    case kSeconds:
    case kMinutes:
    case kHours:
    case kWeekday:
    case kDay:
    case kMonth:
    case kYear:
    case kCentury:
      return ReadTime(index, unix_seconds);
    case kA:
      return static_cast<uint8_t>(memory_[kA] & ~kUpdateInProgress);
    case kC:
      return 0;
    case kD:
      return kValidRam;
    default:
      return memory_[index];
  }
}

uint8_t RtcCmos::ReadTime(uint8_t index, int64_t unix_seconds) const {
  const time_t seconds = unix_seconds;
  tm utc = {};
  gmtime_r(&seconds, &utc);
  const bool hours24 = (memory_[kB] & kHours24) != 0;
  const auto encoded = [this](int value) {
    const bool binary = (memory_[kB] & kBinary) != 0;
    return static_cast<uint8_t>(binary ? value : value / 10 * 16 + value % 10);
  };
  switch (index) {
    case kSeconds:
      return encoded(utc.tm_sec);
    case kMinutes:
      return encoded(utc.tm_min);
    case kHours:
      if (hours24) return encoded(utc.tm_hour);
      return static_cast<uint8_t>(encoded((utc.tm_hour + 11) % 12 + 1) |
                                  (utc.tm_hour >= 12 ? kAmPm : 0));
    case kWeekday:
      return encoded(utc.tm_wday + 1);
    case kDay:
      return encoded(utc.tm_mday);
    case kMonth:
      return encoded(utc.tm_mon + 1);
    case kYear:
      return encoded(utc.tm_year % 100);
    default:
      return encoded(19 + utc.tm_year / 100);
  }
}

void RtcCmos::Write(uint16_t port, uint32_t size, uint32_t value) {
  WriteByteByByte(port, size, value, [this](uint16_t at, uint8_t byte) {
    if (at == kIndex) index_ = byte & 0x7f;
    if (at == kData) memory_[index_] = byte;
  });
}

}  // namespace sipi
