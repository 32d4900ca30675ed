#include "vmm/device/i8259_chip.h"

#include <bit>

namespace sipi {
namespace {

// ICW1 ("Initialization Command Words 1 and 2").
constexpr uint8_t kIcw1 = 0x10;  // tells ICW1 from OCW2 and OCW3
constexpr uint8_t kIcw1Icw4 = 0x01;
constexpr uint8_t kIcw1Single = 0x02;
constexpr uint8_t kIcw1Level = 0x08;
// ICW4.
constexpr uint8_t kIcw4AutoEoi = 0x02;
constexpr uint8_t kIcw4SpecialNested = 0x10;
// OCW2: R, SL, EOI in bits 7:5, a level in bits 2:0.
constexpr uint8_t kOcw2Rotate = 0x80;
// OCW3.
constexpr uint8_t kOcw3 = 0x08;
constexpr uint8_t kOcw3SetSpecialMask = 0x40;
constexpr uint8_t kOcw3SpecialMask = 0x20;
constexpr uint8_t kOcw3Poll = 0x04;
constexpr uint8_t kOcw3ReadRegister = 0x02;
constexpr uint8_t kOcw3ReadIsr = 0x01;

constexpr uint8_t Bit(uint32_t level) { return static_cast<uint8_t>(1u << (level & 7)); }

}  // namespace

// "Edge and Level Triggered Modes". An edge is kept; a level counts as long as it lasts.
void I8259Chip::SetLine(uint32_t level, bool high) {
  const uint8_t bit = Bit(level);
  if (high && (lines_ & bit) == 0) edges_ |= bit;
  lines_ = static_cast<uint8_t>(high ? lines_ | bit : lines_ & ~bit);
}

uint8_t I8259Chip::requested() const {
  const uint8_t level = all_level_ ? uint8_t{0xff} : level_inputs_;
  return static_cast<uint8_t>((lines_ & level) | (edges_ & ~level));
}

std::optional<uint8_t> I8259Chip::HighestOf(uint8_t levels) const {
  if (levels == 0) return std::nullopt;
  const int rank = std::countr_zero(std::rotr(levels, lowest_ + 1));
  return static_cast<uint8_t>((rank + lowest_ + 1) & 7);
}

// "Fully Nested Mode": a request counts if nothing of its own or a higher priority is in service.
// "Special Mask Mode": a masked level in service inhibits no other. "The Special Fully Nested
// Mode": a slave in service does not lock out its own further requests.
std::optional<uint8_t> I8259Chip::Pending() const {
  if (!initialized_) return std::nullopt;
  const std::optional<uint8_t> request = HighestOf(static_cast<uint8_t>(requested() & ~imr_));
  if (!request.has_value()) return std::nullopt;
  const uint8_t inhibiting = static_cast<uint8_t>(special_mask_ ? isr_ & ~imr_ : isr_);
  const std::optional<uint8_t> served = HighestOf(inhibiting);
  if (!served.has_value() || Rank(*request) < Rank(*served)) return request;
  const bool own_slave = special_nested_ && (cascade_inputs_ & Bit(*request)) != 0;
  return own_slave && *request == *served ? request : std::nullopt;
}

std::optional<uint8_t> I8259Chip::Acknowledge() {
  const std::optional<uint8_t> level = Pending();
  if (!level.has_value()) return std::nullopt;
  const uint8_t bit = Bit(*level);
  edges_ = static_cast<uint8_t>(edges_ & ~bit);
  isr_ |= bit;
  // "Automatic End of Interrupt (AEOI) Mode": a non-specific EOI with the last INTA pulse. What was
  // acknowledged has the highest priority, so it is the one that ends.
  if (auto_eoi_) EndOfInterrupt(*level, rotate_in_auto_eoi_);
  return level;
}

// "Automatic Rotation", "Specific Rotation": the level served becomes the lowest.
void I8259Chip::EndOfInterrupt(uint8_t level, bool rotate) {
  isr_ = static_cast<uint8_t>(isr_ & ~Bit(level));
  if (rotate) lowest_ = level;
}

void I8259Chip::WriteCommand(uint8_t value) {
  if ((value & kIcw1) != 0) {
    WriteIcw1(value);
  } else if ((value & kOcw3) != 0) {
    WriteOcw3(value);
  } else {
    WriteOcw2(value);
  }
}

// "Initialization Command Words", items a to f. That nothing stays in service is the data sheet's
// master clear ("Priority Cell" diagram).
void I8259Chip::WriteIcw1(uint8_t value) {
  edges_ = 0;
  isr_ = 0;
  imr_ = 0;
  lowest_ = 7;
  special_mask_ = false;
  reads_isr_ = false;
  poll_ = false;
  auto_eoi_ = false;
  rotate_in_auto_eoi_ = false;
  special_nested_ = false;
  all_level_ = (value & kIcw1Level) != 0;
  single_ = (value & kIcw1Single) != 0;
  has_icw4_ = (value & kIcw1Icw4) != 0;
  initialized_ = false;
  expects_ = Expects::kIcw2;
}

void I8259Chip::WriteData(uint8_t value) {
  switch (expects_) {
    case Expects::kNothing:
      imr_ = value;  // OCW1
      return;
    case Expects::kIcw2:
      vector_base_ = value & 0xf8;
      expects_ = !single_ ? Expects::kIcw3 : has_icw4_ ? Expects::kIcw4 : Expects::kNothing;
      break;
    case Expects::kIcw3:
      expects_ = has_icw4_ ? Expects::kIcw4 : Expects::kNothing;
      break;
    case Expects::kIcw4:
      auto_eoi_ = (value & kIcw4AutoEoi) != 0;
      special_nested_ = (value & kIcw4SpecialNested) != 0;
      expects_ = Expects::kNothing;
      break;
  }
  initialized_ = expects_ == Expects::kNothing;
}

// "Operation Control Word 2". A non-specific EOI ends what has the highest priority in service, but
// in special mask mode nothing that is masked.
void I8259Chip::WriteOcw2(uint8_t value) {
  const uint8_t level = value & 7;
  const bool rotate = (value & kOcw2Rotate) != 0;
  switch (value >> 5) {
    case 0b000:  // rotate in automatic EOI mode, clear
    case 0b100:  // and set
      rotate_in_auto_eoi_ = rotate;
      return;
    case 0b001:  // non-specific EOI
    case 0b101: {
      const std::optional<uint8_t> served =
          HighestOf(static_cast<uint8_t>(special_mask_ ? isr_ & ~imr_ : isr_));
      if (served.has_value()) EndOfInterrupt(*served, rotate);
      return;
    }
    case 0b011:  // specific EOI
    case 0b111:
      EndOfInterrupt(level, rotate);
      return;
    case 0b110:  // set priority
      lowest_ = level;
      return;
    default:  // no operation
      return;
  }
}

// "Operation Control Word 3".
void I8259Chip::WriteOcw3(uint8_t value) {
  if ((value & kOcw3SetSpecialMask) != 0) special_mask_ = (value & kOcw3SpecialMask) != 0;
  if ((value & kOcw3ReadRegister) != 0) reads_isr_ = (value & kOcw3ReadIsr) != 0;
  poll_ = (value & kOcw3Poll) != 0;
}

// "Poll Command": the next read acknowledges, as INTA would.
uint8_t I8259Chip::Poll() {
  poll_ = false;
  const std::optional<uint8_t> level = Acknowledge();
  return level.has_value() ? static_cast<uint8_t>(0x80 | *level) : uint8_t{0};
}

// "Reading the 8259A Status".
uint8_t I8259Chip::ReadCommand() {
  if (poll_) return Poll();
  return reads_isr_ ? isr_ : requested();
}

uint8_t I8259Chip::ReadData() { return poll_ ? Poll() : imr_; }

}  // namespace sipi
