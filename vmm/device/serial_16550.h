// The transmit half of a 16550 UART: what the guest writes goes to an output stage at once, so the
// transmitter is always empty. Nothing is ever received, no interrupt is raised.
// Source: PC16550D data sheet, "Register Descriptions" (offsets and reset values).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

#include "vmm/device/output_stage.h"

namespace sipi {

inline constexpr uint16_t kSerialPorts = 8;

// Any thread: a guest's CPUs share the port.
class Serial16550 {
 public:
  explicit Serial16550(OutputStage& output) : output_(output) {}

  // `offset` counts from the base port, below kSerialPorts. A string write (REP OUTSB) passes all
  // its bytes at once.
  void Write(uint16_t offset, std::span<const std::byte> bytes);
  uint8_t Read(uint16_t offset);

 private:
  enum Register : uint16_t {
    kData = 0,             // THR/RBR; divisor low with DLAB
    kInterruptEnable = 1,  // divisor high with DLAB
    kInterruptIdent = 2,   // FIFO control when written
    kLineControl = 3,
    kModemControl = 4,
    kLineStatus = 5,
    kModemStatus = 6,
    kScratch = 7,
  };
  bool DivisorLatch() const { return (registers_[kLineControl] & 0x80) != 0; }

  OutputStage& output_;
  std::mutex mutex_;  // guards what is below
  std::array<uint8_t, kSerialPorts> registers_ = {};
  uint8_t fifo_control_ = 0;
  std::array<uint8_t, 2> divisor_ = {1, 0};
};

}  // namespace sipi
