// Where a board's interrupt lines end: in our own controllers (UserLines) or in KVM's (KvmLines).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "apic/regs/types.h"

namespace sipi {

// Lines are numbered as the inputs of a PC's I/O APIC: 0 to 15 are also the IRQs of the two 8259,
// but for line 0 (the timer), which is input 2 of the I/O APIC.
inline constexpr uint32_t kBoardLines = 24;

// Any thread, many at once.
class InterruptLines {
 public:
  virtual ~InterruptLines() = default;

  // Drives a line high or low. Lines that do not exist: no effect.
  virtual void SetLine(uint32_t line, bool high) = 0;

  // --- The controllers' own registers. False: nobody is there.
  virtual bool ReadPort(uint16_t port, uint32_t size, uint32_t* value) = 0;
  virtual bool WritePort(uint16_t port, uint32_t size, uint32_t value) = 0;
  virtual bool ReadMmio(Gpa gpa, std::span<std::byte> data) = 0;
  virtual bool WriteMmio(Gpa gpa, std::span<const std::byte> data) = 0;

  // A local APIC ended a level-triggered interrupt.
  virtual void EndOfInterrupt(Vector vector) = 0;

  // What decides about the messages that reach a local APIC has changed: its mode, software enable
  // or an ID. To be called once that is published.
  virtual void TargetsChanged() = 0;

  // The 8259's INT output, and the CPU's acknowledge cycle, where it is not KVM's own affair.
  virtual bool IntPin() const = 0;
  virtual Vector Acknowledge() = 0;
};

}  // namespace sipi
