// A PC's two 8259A: the master at 20H, the slave at A0H on the master's input 2, and the edge/level
// registers (ELCR) at 4D0H and 4D1H.
//
// Source: Intel, 8259A data sheet (order number 231468), "Cascade Mode"; the ELCR: any Intel I/O
// controller hub's data sheet, registers ELCR1 and ELCR2. The caller serialises.
//
// The INT output drives LINT0 of the local APICs (as ExtINT) and input 0 of an I/O APIC. What is
// not modelled: see i8259_chip.h.
#pragma once

#include <cstdint>

#include "apic/regs/types.h"
#include "vmm/device/i8259_chip.h"

namespace sipi {

class I8259 {
 public:
  static constexpr bool Claims(uint16_t port) {
    return port == kMaster || port == kMaster + 1 || port == kSlave || port == kSlave + 1 ||
           port == kElcr || port == kElcr + 1;
  }

  // After either, INT may have changed: ask IntPin(). Reading acknowledges after a poll command.
  uint32_t Read(uint16_t port, uint32_t size);
  void Write(uint16_t port, uint32_t size, uint32_t value);

  // IRQ line 0-15 is high or low. Lines 2 (the cascade) and above 15 do not exist: no effect.
  void SetLine(uint32_t irq, bool high);

  // True while the CPU is to be interrupted.
  bool IntPin() const { return master_.IntPin(); }

  // The CPU's interrupt acknowledge cycle: the vector. Without a request it is the spurious one of
  // IRQ 7 or, if the slave has withdrawn its request, of IRQ 15.
  Vector Acknowledge();

  // Programs both as a PC's firmware does: vectors 08H and 70H, normal EOI. All lines are unmasked.
  void ProgramAsFirmware();

  const I8259Chip& master() const { return master_; }
  const I8259Chip& slave() const { return slave_; }

 private:
  static constexpr uint16_t kMaster = 0x20;
  static constexpr uint16_t kSlave = 0xa0;
  static constexpr uint16_t kElcr = 0x4d0;
  static constexpr uint8_t kCascade = 2;

  uint8_t ReadByte(uint16_t port);
  void WriteByte(uint16_t port, uint8_t value);
  // The slave's INT drops while it is acknowledged, so that what still waits makes a new edge.
  void PulseCascade();

  I8259Chip master_{1u << kCascade};
  I8259Chip slave_;
};

}  // namespace sipi
