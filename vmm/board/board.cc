#include "vmm/board/board.h"

#include <ctime>
#include <utility>

#include "vmm/device/pci_none.h"
#include "vmm/load/firmware.h"

namespace sipi {

Board::Board(uint64_t ram_bytes, uint32_t cpus, std::unique_ptr<InterruptLines> lines)
    : lines_(std::move(lines)), fw_cfg_(ram_bytes, cpus) {}

bool Board::ReadPort(uint16_t port, uint32_t size, uint32_t* value) {
  if (lines_->ReadPort(port, size, value)) return true;
  const std::lock_guard lock(mutex_);
  if (RtcCmos::Claims(port)) {
    *value = rtc_.Read(port, size, static_cast<int64_t>(std::time(nullptr)));
  } else if (ResetPorts::Claims(port) && size == 1) {  // CF9H before CF8H's neighbours
    *value = reset_.Read(port, size);
  } else if (FwCfg::Claims(port)) {
    *value = fw_cfg_.Read(port, size);
  } else if (TestDevice::Claims(port)) {
    *value = test_device_.Read(port, size);
  } else if (PciNone::Claims(port)) {
    *value = PciNone::Read(port, size);
  } else {
    return false;
  }
  return true;
}

bool Board::WritePort(uint16_t port, uint32_t size, uint32_t value, PortAction* action) {
  *action = {};
  if (lines_->WritePort(port, size, value)) return true;
  if (TestDevice::Claims(port)) {
    *action = WriteTestDevice(port, size, value);
    return true;
  }
  const std::lock_guard lock(mutex_);
  if (port == kFirmwarePort) {
    *action = {PortAction::Kind::kFirmware, 0};
  } else if (RtcCmos::Claims(port)) {
    rtc_.Write(port, size, value);
  } else if (ResetPorts::Claims(port) && size == 1) {
    *action = WriteReset(port, size, value);
  } else if (FwCfg::Claims(port)) {
    fw_cfg_.Write(port, size, value);
  } else if (PciNone::Claims(port)) {
    PciNone::Write(port, size, value);
  } else {
    return false;
  }
  return true;
}

// A CPU reset is somebody's way back to real mode if the shutdown byte says where to go on. Without
// it firmware would boot afresh: the guest reboots.
PortAction Board::WriteReset(uint16_t port, uint32_t size, uint32_t value) {
  switch (reset_.Write(port, size, value)) {
    case ResetKind::kNone:
      return {};
    case ResetKind::kSystem:
      return {PortAction::Kind::kSystemReset, port};
    case ResetKind::kInit:
      break;
  }
  const bool resumes = rtc_.shutdown_byte() == RtcCmos::kJumpToResumeVector;
  return {resumes ? PortAction::Kind::kInitLine : PortAction::Kind::kSystemReset, port};
}

PortAction Board::WriteTestDevice(uint16_t port, uint32_t size, uint32_t value) {
  TestDeviceAction asked;
  {
    const std::lock_guard lock(mutex_);
    asked = test_device_.Write(port, size, value);
  }
  switch (asked.kind) {
    case TestDeviceAction::Kind::kNone:
      return {};
    case TestDeviceAction::Kind::kSetLine:
      lines_->SetLine(asked.line, asked.high);
      return {};
    case TestDeviceAction::Kind::kFlushPage:
      return {PortAction::Kind::kFlushPage, static_cast<uint32_t>(asked.page.value)};
  }
  return {};
}

bool Board::ReadMmio(Gpa gpa, std::span<std::byte> data) {
  if (lines_->ReadMmio(gpa, data)) return true;
  const uint64_t offset = gpa.value - TestDevice::kMmioGpa.value;
  if (gpa < TestDevice::kMmioGpa || offset >= TestDevice::kMmioBytes) return false;
  const std::lock_guard lock(mutex_);
  test_device_.ReadMmio(offset, data);
  return true;
}

bool Board::WriteMmio(Gpa gpa, std::span<const std::byte> data) {
  if (lines_->WriteMmio(gpa, data)) return true;
  const uint64_t offset = gpa.value - TestDevice::kMmioGpa.value;
  if (gpa < TestDevice::kMmioGpa || offset >= TestDevice::kMmioBytes) return false;
  const std::lock_guard lock(mutex_);
  test_device_.WriteMmio(offset, data);
  return true;
}

}  // namespace sipi
