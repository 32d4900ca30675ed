// An I/O APIC with 24 inputs: turns changes of lines into interrupt messages.
//
// Source: Intel, 82093AA I/O Advanced Programmable Interrupt Controller data sheet (290566),
// sections 3.1 and 3.2; the EOI register at offset 40H: any Intel I/O controller hub's data sheet,
// register EOIR (version 20H). Nothing is called back: what is to be sent is returned, and goes
// through apic::RoutingTable::ForEachDeviceTarget. Of the destination modes only what the message
// says matters here. The caller serialises.
//
// Where the data sheets leave a choice:
// - Remote IRR says that a local APIC has accepted the level interrupt (3.2.4, bit 14). It is set
//   with the message; whoever sends that tells of one that nobody took (NotAccepted), and the input
//   is tried again when its line or entry is set, at an EOI of its vector, and when a local APIC
//   changes (Retry). A target that the message has reached and that then refuses it, because an
//   INIT or a software disable came first or the vector is illegal, counts as one that accepted:
//   software has to switch the entry to edge and back, as on hardware.
// - Delivery status reads 0, even while such an input waits.
// - Switching an entry to edge trigger clears remote IRR, on which software relies.
// - NMI, SMI, INIT and ExtINT are edge-triggered whatever the entry's trigger mode says.
// - A level interrupt is sent when its entry is unmasked or changed, too, if the line asks for it.
// Not modelled: extended destination IDs, the arbitration bus (its ID register follows the ID),
// interrupt remapping. ExtINT is returned as such: who sends it asks the 8259 for the vector.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "apic/regs/icr.h"
#include "apic/regs/types.h"

namespace sipi {

inline constexpr uint64_t kIoApicGpa = 0xfec0'0000;
inline constexpr uint32_t kIoApicInputs = 24;

// A device's message: vector, mode, dest (8 bits), logical and level_triggered count.
struct IoApicMessage : apic::Icr {
  uint32_t input = 0;  // where it comes from
};

// The message that a redirection entry stands for.
apic::Icr IoApicMessageOf(uint64_t entry);

// What one access or EOI makes due: nothing but rarely.
class IoApicMessages {
 public:
  void Add(const IoApicMessage& message) { messages_[count_++] = message; }
  const IoApicMessage* begin() const { return messages_.data(); }
  const IoApicMessage* end() const { return messages_.data() + count_; }
  size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }

 private:
  size_t count_ = 0;
  std::array<IoApicMessage, kIoApicInputs> messages_;
};

class IoApic {
 public:
  // `version` 11H is the 82093AA; 20H also has the EOI register.
  explicit IoApic(uint8_t id = 0, uint8_t version = 0x20)
      : id_(static_cast<uint8_t>(id & 15)), arbitration_(id_), version_(version) {
    entries_.fill(kMasked);
  }

  // MMIO in the page at kIoApicGpa. Registers are 32 bits wide and all accesses should be: narrower
  // and wider ones are zero-extended and cut.
  uint32_t Read(uint64_t offset) const;
  [[nodiscard]] IoApicMessages Write(uint64_t offset, uint32_t value);

  // The electrical level of an input; the entry's polarity says which one asks for the interrupt.
  // Inputs that do not exist: no effect.
  [[nodiscard]] std::optional<IoApicMessage> SetLine(uint32_t input, bool high);

  // A local APIC broadcasts the EOI of a level-triggered interrupt.
  [[nodiscard]] IoApicMessages EndOfInterrupt(Vector vector);

  // No local APIC took the message of that input. Call before anything else happens to this chip.
  // Precondition: input < kIoApicInputs.
  void NotAccepted(uint32_t input);

  // Some local APIC may now take what none took before.
  [[nodiscard]] IoApicMessages Retry();

  // A redirection entry as its two registers hold it. Precondition: input < kIoApicInputs.
  uint64_t entry(uint32_t input) const { return entries_[input]; }

 private:
  static constexpr uint64_t kMasked = 1u << 16;

  uint32_t ReadRegister(uint8_t index) const;
  void WriteEntry(uint32_t input, bool high_half, uint32_t value);
  bool Asserted(uint32_t input) const;
  // Sends the level interrupt of `input` if it is due.
  std::optional<IoApicMessage> ServeLevel(uint32_t input);

  std::array<uint64_t, kIoApicInputs> entries_;
  uint32_t lines_ = 0;
  uint8_t select_ = 0;
  uint8_t id_;
  uint8_t arbitration_;
  uint8_t version_;
};

}  // namespace sipi
