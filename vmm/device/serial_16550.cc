#include "vmm/device/serial_16550.h"

namespace sipi {
namespace {

constexpr uint8_t kTransmitterEmpty = 0x60;    // LSR: THR and shift register empty
constexpr uint8_t kNoInterruptPending = 0x01;  // IIR bit 0
constexpr uint8_t kFifosEnabled = 0xc0;        // IIR bits 7:6 while FCR bit 0 is set
constexpr uint8_t kModemReady = 0xb0;          // MSR: DCD, DSR, CTS

}  // namespace

void Serial16550::Write(uint16_t offset, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const std::lock_guard lock(mutex_);
  const uint8_t last = std::to_integer<uint8_t>(bytes.back());
  switch (offset) {
    case kData:
      if (DivisorLatch()) {
        divisor_[0] = last;
      } else {
        // Under the lock, so that bytes of several CPUs go out in the order they were sent.
        output_.Write(bytes);
      }
      return;
    case kInterruptEnable:
      if (DivisorLatch()) {
        divisor_[1] = last;
      } else {
        registers_[kInterruptEnable] = last & 0x0f;
      }
      return;
    case kInterruptIdent:
      fifo_control_ = last;
      return;
    case kLineStatus:
    case kModemStatus:
      return;  // read-only
    default:
      registers_[offset] = last;
  }
}

uint8_t Serial16550::Read(uint16_t offset) {
  const std::lock_guard lock(mutex_);
  switch (offset) {
    case kData:
      return DivisorLatch() ? divisor_[0] : 0;
    case kInterruptEnable:
      return DivisorLatch() ? divisor_[1] : registers_[kInterruptEnable];
    case kInterruptIdent:
      return kNoInterruptPending | ((fifo_control_ & 1) != 0 ? kFifosEnabled : 0);
    case kLineStatus:
      return kTransmitterEmpty;
    case kModemStatus:
      return kModemReady;
    default:
      return registers_[offset];
  }
}

}  // namespace sipi
