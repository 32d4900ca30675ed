// The ports by which a PC resets itself: the keyboard controller's command FEH and its output port,
// port 92H, the reset control register at CF9H.
//
// Source: any Intel I/O controller hub's data sheet, registers PORT92 and RST_CNT, and "INIT#
// generation"; the i8042: IBM PC AT Technical Reference, "Keyboard Controller". The caller
// serialises, and decides what a reset of either kind does to the machine.
//
// Not modelled: a keyboard or a mouse (the controller answers commands, bytes for the devices are
// lost), its interrupts, the A20 gate (it is always open; the bits read back), CF9H's full reset
// (bit 3 reads back).
#pragma once

#include <cstdint>

namespace sipi {

enum class ResetKind : uint8_t {
  kNone,
  kInit,    // INIT#: CPUs start over, memory and devices stay
  kSystem,  // everything starts over
};

class ResetPorts {
 public:
  static constexpr bool Claims(uint16_t port) {
    return port == kData || port == kCommand || port == kPort92 || port == kResetControl;
  }

  uint32_t Read(uint16_t port, uint32_t size);
  // An access wider than a byte counts at its first port only: CF9H lies within PCI's address
  // register at CF8H, which is 32 bits wide.
  ResetKind Write(uint16_t port, uint32_t size, uint32_t value);

 private:
  static constexpr uint16_t kData = 0x60;
  static constexpr uint16_t kCommand = 0x64;
  static constexpr uint16_t kPort92 = 0x92;
  static constexpr uint16_t kResetControl = 0xcf9;

  enum class DataGoesTo : uint8_t { kDevice, kCommandByte, kOutputPort };

  ResetKind WriteCommand(uint8_t command);
  ResetKind WriteData(uint8_t value);
  ResetKind WritePort92(uint8_t value);
  ResetKind WriteResetControl(uint8_t value);
  void Answer(uint8_t value);

  uint8_t command_byte_ = 0x45;  // as firmware leaves it: translate, system flag, interrupt 1
  uint8_t output_port_ = 0xcf;   // A20 open, not reset
  uint8_t output_buffer_ = 0;
  bool output_full_ = false;
  bool last_was_command_ = false;
  DataGoesTo data_goes_to_ = DataGoesTo::kDevice;
  uint8_t port92_ = 0;
  uint8_t reset_control_ = 0;
};

}  // namespace sipi
