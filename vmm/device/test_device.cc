#include "vmm/device/test_device.h"

#include <algorithm>

#include "vmm/device/port_access.h"

namespace sipi {

uint32_t TestDevice::Read(uint16_t port, uint32_t size) const {
  return ReadByteByByte(port, size, [this](uint16_t at) {
    return at >= kReadBack && at < kReadBack + 4 ? read_back_[at - kReadBack] : uint8_t{0xff};
  });
}

TestDeviceAction TestDevice::Write(uint16_t port, uint32_t size, uint32_t value) {
  if (port >= kLine0 && port < kLine0 + kLines) {
    return {TestDeviceAction::Kind::kSetLine, port - uint32_t{kLine0}, value != 0, Gpa(0)};
  }
  if (port == kFlush) {
    constexpr uint64_t kPageMask = 0xfff;
    return {TestDeviceAction::Kind::kFlushPage, 0, false, Gpa(value & ~kPageMask)};
  }
  WriteByteByByte(port, size, value, [this](uint16_t at, uint8_t byte) {
    if (at >= kReadBack && at < kReadBack + 4) read_back_[at - kReadBack] = byte;
  });
  return {};
}

void TestDevice::ReadMmio(uint64_t offset, std::span<std::byte> data) const {
  if (offset > kMmioBytes || data.size() > kMmioBytes - offset) {
    std::fill(data.begin(), data.end(), std::byte{0xff});
  } else if (memory_ == nullptr) {
    std::fill(data.begin(), data.end(), std::byte{0});
  } else {
    std::copy_n(memory_.get() + offset, data.size(), data.begin());
  }
}

void TestDevice::WriteMmio(uint64_t offset, std::span<const std::byte> data) {
  if (offset > kMmioBytes || data.size() > kMmioBytes - offset) return;
  if (memory_ == nullptr) memory_ = std::make_unique<std::byte[]>(kMmioBytes);
  std::copy(data.begin(), data.end(), memory_.get() + offset);
}

}  // namespace sipi
