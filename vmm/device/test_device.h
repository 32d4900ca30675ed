// The test device that kvm-unit-tests expect: interrupt lines driven by port writes, a port that
// reads back, a port that flushes a page, a piece of memory behind MMIO.
//
// Source: QEMU, hw/misc/pc-testdev.c, its head comment and port map. The caller serialises, drives
// the lines, and flushes the page.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "apic/regs/types.h"

namespace sipi {

// What a write asks of the machine.
struct TestDeviceAction {
  enum class Kind : uint8_t {
    kNone,
    kSetLine,    // drive `line` to `high`
    kFlushPage,  // unmap the page at `page` from the guest for a moment, so that it faults anew
  };
  Kind kind = Kind::kNone;
  uint32_t line = 0;
  bool high = false;
  Gpa page;
};

class TestDevice {
 public:
  static constexpr uint32_t kLines = 24;
  static constexpr Gpa kMmioGpa{0xff00'0000};
  static constexpr uint64_t kMmioBytes = 0x1'0000;

  static constexpr bool Claims(uint16_t port) {
    return (port >= kReadBack && port < kReadBack + 4) || (port >= kFlush && port < kFlush + 4) ||
           (port >= kLine0 && port < kLine0 + kLines);
  }

  uint32_t Read(uint16_t port, uint32_t size) const;
  TestDeviceAction Write(uint16_t port, uint32_t size, uint32_t value);

  // Accesses at kMmioGpa + offset of 1 to 8 bytes. What lies outside reads as ones and swallows
  // writes.
  void ReadMmio(uint64_t offset, std::span<std::byte> data) const;
  void WriteMmio(uint64_t offset, std::span<const std::byte> data);

 private:
  static constexpr uint16_t kReadBack = 0xe0;
  static constexpr uint16_t kFlush = 0xe4;
  static constexpr uint16_t kLine0 = 0x2000;

  std::array<uint8_t, 4> read_back_ = {};
  std::unique_ptr<std::byte[]> memory_;  // made by the first write
};

}  // namespace sipi
