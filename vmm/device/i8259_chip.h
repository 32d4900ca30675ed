// One 8259A interrupt controller: priority resolver, masks, in-service bits, command words.
//
// Source: Intel, 8259A Programmable Interrupt Controller data sheet (order number 231468); the
// section is named at each function. The caller serialises.
//
// Where this chip differs: an edge stays requested until it is acknowledged, even if the line falls
// before that (the data sheet's chip then answers with IR7), as in KVM's and QEMU's models: a
// virtual device pulses its line faster than any CPU can look.
// Not modelled: the MCS-80/85 CALL sequence (vectors are those of 8086 mode whatever ICW4 says),
// buffered mode (nothing to see for software), slave addresses (ICW3 is taken and ignored; the
// wiring is the pair's).
#pragma once

#include <cstdint>
#include <optional>

namespace sipi {

class I8259Chip {
 public:
  // `cascade_inputs`: one bit for each input that a slave's INT drives.
  explicit I8259Chip(uint8_t cascade_inputs = 0) : cascade_inputs_(cascade_inputs) {}

  // The two addresses, A0 = 0 and A0 = 1. Reading A0 = 0 or 1 after a poll command acknowledges.
  void WriteCommand(uint8_t value);
  void WriteData(uint8_t value);
  uint8_t ReadCommand();
  uint8_t ReadData();

  // Input `level` (0-7) is high or low.
  void SetLine(uint32_t level, bool high);
  // Which inputs are level-triggered (a chipset's ELCR); ICW1's LTIM makes all of them so.
  void SetLevelTriggered(uint8_t inputs) { level_inputs_ = inputs; }
  uint8_t level_triggered() const { return level_inputs_; }

  // The INT output: a request waits that nothing in service inhibits. Never before the chip has
  // been initialised.
  bool IntPin() const { return Pending().has_value(); }

  // The INTA sequence ("Interrupt Sequence"): the level acknowledged, now in service (or, with
  // automatic EOI, already done with); none if no request is left: the spurious interrupt, which
  // has vector(7) and sets no in-service bit.
  std::optional<uint8_t> Acknowledge();
  uint8_t vector(uint8_t level) const { return static_cast<uint8_t>(vector_base_ | level); }

  bool poll_due() const { return poll_; }  // the next read acknowledges
  uint8_t requested() const;               // IRR
  uint8_t in_service() const { return isr_; }
  uint8_t mask() const { return imr_; }

 private:
  enum class Expects : uint8_t { kNothing, kIcw2, kIcw3, kIcw4 };

  std::optional<uint8_t> Pending() const;
  uint32_t Rank(uint8_t level) const { return (level - lowest_ - 1u) & 7; }
  std::optional<uint8_t> HighestOf(uint8_t levels) const;
  void WriteIcw1(uint8_t value);
  void WriteOcw2(uint8_t value);
  void WriteOcw3(uint8_t value);
  void EndOfInterrupt(uint8_t level, bool rotate);
  uint8_t Poll();

  const uint8_t cascade_inputs_;
  uint8_t lines_ = 0;
  uint8_t edges_ = 0;  // rising edges not yet acknowledged
  uint8_t isr_ = 0;
  uint8_t imr_ = 0;
  uint8_t level_inputs_ = 0;
  uint8_t vector_base_ = 0;
  uint8_t lowest_ = 7;  // the level with the lowest priority; the next one has the highest
  Expects expects_ = Expects::kNothing;
  bool initialized_ = false;
  bool single_ = false;     // ICW1.SNGL: there is no ICW3
  bool has_icw4_ = false;   // ICW1.IC4
  bool all_level_ = false;  // ICW1.LTIM
  bool auto_eoi_ = false;
  bool rotate_in_auto_eoi_ = false;
  bool special_nested_ = false;
  bool special_mask_ = false;
  bool reads_isr_ = false;
  bool poll_ = false;
};

}  // namespace sipi
