#include "vmm/device/port_bus.h"

#include <algorithm>
#include <cstring>

#include "guest/abi/layout.h"
#include "vmm/device/monotonic_clock.h"
#include "vmm/device/pm_timer.h"

namespace sipi {
namespace {

bool IsSerial(uint16_t port) {
  return port >= abi::kSerialPort && port < abi::kSerialPort + kSerialPorts;
}

// The last access of a string, zero-extended: what a register that is written repeatedly holds.
uint32_t LastValue(uint32_t size, std::span<const std::byte> data) {
  uint32_t value = 0;
  const size_t bytes = std::min<size_t>({size, data.size(), sizeof value});
  std::memcpy(&value, data.data() + (data.size() - bytes), bytes);
  return value;
}

PortAction::Kind ActionOf(uint16_t port) {
  switch (port) {
    case abi::kExitPort:
      return PortAction::Kind::kExit;
    case abi::kDoorbellPort:
      return PortAction::Kind::kDoorbell;
    case abi::kChargePort:
      return PortAction::Kind::kCharge;
    case abi::kYieldPort:
      return PortAction::Kind::kYield;
    default:
      return PortAction::Kind::kNone;
  }
}

}  // namespace

PortBus::WriteResult PortBus::Write(uint16_t port, uint32_t size, std::span<const std::byte> data) {
  if (IsSerial(port)) {
    const uint16_t offset = static_cast<uint16_t>(port - abi::kSerialPort);
    if (size == 1) serial_.Write(offset, data);
    return {size == 1, {}};
  }
  const PortAction::Kind asked = ActionOf(port);
  // But for the exit port these are our own guest's; other guests have a board instead.
  const bool exists = more_ == nullptr || asked == PortAction::Kind::kExit;
  const PortAction::Kind kind = exists ? asked : PortAction::Kind::kNone;
  if (kind == PortAction::Kind::kNone) {
    if (port == abi::kPmTimerPort) return {true, {}};  // it is read-only
    return WriteMore(port, size, data);
  }
  return {true, {kind, LastValue(size, data)}};
}

bool PortBus::Read(uint16_t port, uint32_t size, std::span<std::byte> data) {
  if (IsSerial(port) && size == 1) {
    const uint16_t offset = static_cast<uint16_t>(port - abi::kSerialPort);
    for (std::byte& byte : data) byte = std::byte{serial_.Read(offset)};
    return true;
  }
  if (port == abi::kPmTimerPort && size == 4) {
    for (size_t at = 0; at + size <= data.size(); at += size) {
      const uint32_t ticks = PmTimerAt(MonotonicNs());
      std::memcpy(data.data() + at, &ticks, sizeof ticks);
    }
    return true;
  }
  if (ReadMore(port, size, data)) return true;
  std::fill(data.begin(), data.end(), std::byte{0xff});
  return false;
}

// One access at a time; the last one that asks for something counts.
PortBus::WriteResult PortBus::WriteMore(uint16_t port, uint32_t size,
                                        std::span<const std::byte> data) {
  WriteResult result;
  if (more_ == nullptr) return result;
  for (size_t at = 0; at + size <= data.size(); at += size) {
    PortAction action;
    result.handled = more_->WritePort(port, size, LastValue(size, data.subspan(at, size)), &action);
    if (!result.handled) break;
    if (action.kind != PortAction::Kind::kNone) result.action = action;
  }
  return result;
}

bool PortBus::ReadMore(uint16_t port, uint32_t size, std::span<std::byte> data) {
  if (more_ == nullptr) return false;
  for (size_t at = 0; at + size <= data.size(); at += size) {
    uint32_t value = 0;
    if (!more_->ReadPort(port, size, &value)) return false;
    std::memcpy(data.data() + at, &value, size);
  }
  return true;
}

}  // namespace sipi
