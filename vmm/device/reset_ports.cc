#include "vmm/device/reset_ports.h"

#include <utility>

#include "vmm/device/port_access.h"

namespace sipi {
namespace {

// The i8042's status.
constexpr uint8_t kOutputFull = 0x01;
constexpr uint8_t kSystemFlag = 0x04;
constexpr uint8_t kLastWasCommand = 0x08;
constexpr uint8_t kNotLocked = 0x10;
// Its commands.
constexpr uint8_t kReadCommandByte = 0x20;
constexpr uint8_t kWriteCommandByte = 0x60;
constexpr uint8_t kSelfTest = 0xaa;
constexpr uint8_t kTestKeyboardPort = 0xab;
constexpr uint8_t kReadOutputPort = 0xd0;
constexpr uint8_t kWriteOutputPort = 0xd1;
constexpr uint8_t kPulse = 0xf0;  // bits 3:0 clear: pulse those bits of the output port low
// Bit 0 of the output port is the CPU's reset line, active low.
constexpr uint8_t kNotReset = 0x01;

constexpr uint8_t kInitNow = 0x01;  // port 92H
constexpr uint8_t kPort92Writable = 0x03;
constexpr uint8_t kSystemReset = 0x02;  // CF9H
constexpr uint8_t kResetCpu = 0x04;
constexpr uint8_t kResetControlReadable = 0x0a;

}  // namespace

uint32_t ResetPorts::Read(uint16_t port, uint32_t size) {
  if (size != 1) return FloatingBus(size);
  switch (port) {
    case kData:
      output_full_ = false;
      return output_buffer_;
    case kCommand:
      return static_cast<uint8_t>(kSystemFlag | kNotLocked | (output_full_ ? kOutputFull : 0) |
                                  (last_was_command_ ? kLastWasCommand : 0));
    case kPort92:
      return port92_;
    case kResetControl:
      return reset_control_ & kResetControlReadable;
    default:
      return 0xff;
  }
}

ResetKind ResetPorts::Write(uint16_t port, uint32_t /*size*/, uint32_t value) {
  const uint8_t byte = static_cast<uint8_t>(value);
  switch (port) {
    case kData:
      return WriteData(byte);
    case kCommand:
      return WriteCommand(byte);
    case kPort92:
      return WritePort92(byte);
    case kResetControl:
      return WriteResetControl(byte);
    default:
      return ResetKind::kNone;
  }
}

void ResetPorts::Answer(uint8_t value) {
  output_buffer_ = value;
  output_full_ = true;
}

ResetKind ResetPorts::WriteCommand(uint8_t command) {
  last_was_command_ = true;
  data_goes_to_ = DataGoesTo::kDevice;
  if (command >= kPulse) {
    return (command & kNotReset) == 0 ? ResetKind::kInit : ResetKind::kNone;
  }
  switch (command) {
    case kReadCommandByte:
      Answer(command_byte_);
      break;
    case kWriteCommandByte:
      data_goes_to_ = DataGoesTo::kCommandByte;
      break;
    case kSelfTest:
      Answer(0x55);  // passed
      break;
    case kTestKeyboardPort:
      Answer(0x00);  // no fault
      break;
    case kReadOutputPort:
      Answer(output_port_);
      break;
    case kWriteOutputPort:
      data_goes_to_ = DataGoesTo::kOutputPort;
      break;
    default:
      break;
  }
  return ResetKind::kNone;
}

ResetKind ResetPorts::WriteData(uint8_t value) {
  last_was_command_ = false;
  switch (std::exchange(data_goes_to_, DataGoesTo::kDevice)) {
    case DataGoesTo::kCommandByte:
      command_byte_ = value;
      return ResetKind::kNone;
    case DataGoesTo::kOutputPort:
      // The line follows the bit for as long as it takes to reset the CPU, not beyond.
      output_port_ = value | kNotReset;
      return (value & kNotReset) == 0 ? ResetKind::kInit : ResetKind::kNone;
    case DataGoesTo::kDevice:
      return ResetKind::kNone;
  }
  return ResetKind::kNone;
}

// PORT92, bit 0: a transition from 0 to 1 forces INIT#. The bit stays set through it.
ResetKind ResetPorts::WritePort92(uint8_t value) {
  const bool init = (value & kInitNow) != 0 && (port92_ & kInitNow) == 0;
  port92_ = value & kPort92Writable;
  return init ? ResetKind::kInit : ResetKind::kNone;
}

// RST_CNT: bit 2 from 0 to 1 resets; bit 1 says whether by INIT# or the whole platform.
ResetKind ResetPorts::WriteResetControl(uint8_t value) {
  const bool reset = (value & kResetCpu) != 0 && (reset_control_ & kResetCpu) == 0;
  reset_control_ = value;
  if (!reset) return ResetKind::kNone;
  reset_control_ = static_cast<uint8_t>(value & ~kResetCpu);
  return (value & kSystemReset) != 0 ? ResetKind::kSystem : ResetKind::kInit;
}

}  // namespace sipi
