#include "vmm/device/fw_cfg.h"

#include <algorithm>

#include "vmm/device/port_access.h"

namespace sipi {
namespace {

enum Key : uint16_t {
  kSignature = 0x00,
  kId = 0x01,
  kRamSize = 0x03,
  kCpus = 0x05,
  kMaxCpus = 0x0f,
};
constexpr uint16_t kWriteChannel = 0x4000;  // the same item, for writing
constexpr uint64_t kQemu = 0x554d4551;      // "QEMU"
constexpr uint64_t kTraditionalInterface = 1;

}  // namespace

FwCfg::Item FwCfg::Selected() const {
  switch (selector_ & ~kWriteChannel) {
    case kSignature:
      return {kQemu, 4};
    case kId:
      return {kTraditionalInterface, 4};
    case kRamSize:
      return {ram_bytes_, 8};
    case kCpus:
    case kMaxCpus:
      return {std::min(cpus_, 0xffffu), 2};
    default:
      return {};
  }
}

uint32_t FwCfg::Read(uint16_t port, uint32_t size) {
  if (port != kData || size != 1) return FloatingBus(size);
  const Item item = Selected();
  if (offset_ >= item.bytes) return 0;
  return static_cast<uint8_t>(item.value >> 8 * offset_++);
}

void FwCfg::Write(uint16_t port, uint32_t size, uint32_t value) {
  if (port != kSelector || size != 2) return;
  selector_ = static_cast<uint16_t>(value);
  offset_ = 0;
}

}  // namespace sipi
