#include "vmm/device/i8259.h"

#include <optional>

#include "vmm/device/port_access.h"

namespace sipi {
namespace {

// Lines that are always edge-triggered: timer, keyboard, cascade; clock and coprocessor.
constexpr uint8_t kElcrMasterWritable = 0xf8;
constexpr uint8_t kElcrSlaveWritable = 0xde;

}  // namespace

uint32_t I8259::Read(uint16_t port, uint32_t size) {
  return ReadByteByByte(port, size, [this](uint16_t at) { return ReadByte(at); });
}

void I8259::Write(uint16_t port, uint32_t size, uint32_t value) {
  WriteByteByByte(port, size, value, [this](uint16_t at, uint8_t byte) { WriteByte(at, byte); });
}

uint8_t I8259::ReadByte(uint16_t port) {
  switch (port) {
    case kMaster:
      return master_.ReadCommand();
    case kMaster + 1:
      return master_.ReadData();
    case kSlave:
    case kSlave + 1: {
      const bool acknowledges = slave_.poll_due();
      const uint8_t value = port == kSlave ? slave_.ReadCommand() : slave_.ReadData();
      if (acknowledges) PulseCascade();
      return value;
    }
    case kElcr:
      return master_.level_triggered();
    case kElcr + 1:
      return slave_.level_triggered();
    default:
      return 0xff;
  }
}

void I8259::WriteByte(uint16_t port, uint8_t value) {
  switch (port) {
    case kMaster:
      master_.WriteCommand(value);
      break;
    case kMaster + 1:
      master_.WriteData(value);
      break;
    case kSlave:
      slave_.WriteCommand(value);
      break;
    case kSlave + 1:
      slave_.WriteData(value);
      break;
    case kElcr:
      master_.SetLevelTriggered(value & kElcrMasterWritable);
      break;
    case kElcr + 1:
      slave_.SetLevelTriggered(value & kElcrSlaveWritable);
      break;
    default:
      return;
  }
  master_.SetLine(kCascade, slave_.IntPin());
}

void I8259::SetLine(uint32_t irq, bool high) {
  if (irq == kCascade || irq > 15) return;
  if (irq < 8) {
    master_.SetLine(irq, high);
    return;
  }
  slave_.SetLine(irq - 8, high);
  master_.SetLine(kCascade, slave_.IntPin());
}

void I8259::PulseCascade() {
  master_.SetLine(kCascade, false);
  master_.SetLine(kCascade, slave_.IntPin());
}

Vector I8259::Acknowledge() {
  const std::optional<uint8_t> level = master_.Acknowledge();
  if (level != kCascade) return Vector(master_.vector(level.value_or(7)));
  const std::optional<uint8_t> slave_level = slave_.Acknowledge();
  PulseCascade();
  return Vector(slave_.vector(slave_level.value_or(7)));
}

void I8259::ProgramAsFirmware() {
  struct Byte {
    uint16_t port;
    uint8_t value;
  };
  constexpr Byte kBytes[] = {
      {kMaster, 0x11},     {kSlave, 0x11},     {kMaster + 1, 0x08}, {kSlave + 1, 0x70},
      {kMaster + 1, 0x04}, {kSlave + 1, 0x02}, {kMaster + 1, 0x01}, {kSlave + 1, 0x01},
      {kMaster + 1, 0x00}, {kSlave + 1, 0x00},
  };
  for (const Byte& byte : kBytes) WriteByte(byte.port, byte.value);
}

}  // namespace sipi
