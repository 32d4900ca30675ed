#include "vmm/device/io_apic.h"

namespace sipi {
namespace {

// 3.1, and EOIR.
constexpr uint64_t kSelect = 0x00;
constexpr uint64_t kWindow = 0x10;
constexpr uint64_t kEoi = 0x40;
constexpr uint8_t kVersionWithEoi = 0x20;

// 3.2: indices of registers.
constexpr uint8_t kId = 0x00;
constexpr uint8_t kVersion = 0x01;
constexpr uint8_t kArbitration = 0x02;
constexpr uint8_t kFirstEntry = 0x10;
constexpr uint8_t kEndEntry = kFirstEntry + 2 * kIoApicInputs;

// 3.2.4, low half.
constexpr uint64_t kLogical = 1u << 11;
constexpr uint64_t kActiveLow = 1u << 13;
constexpr uint64_t kRemoteIrr = 1u << 14;
constexpr uint64_t kLevel = 1u << 15;
constexpr uint64_t kMask = 1u << 16;
constexpr uint64_t kWritableLow = 0x1'afff;  // not delivery status, not remote IRR
constexpr uint64_t kWritableHigh = 0xff00'0000;

apic::DeliveryMode ModeOf(uint64_t entry) {
  return static_cast<apic::DeliveryMode>(entry >> 8 & 7);
}

bool IsLevel(uint64_t entry) {
  const apic::DeliveryMode mode = ModeOf(entry);
  return (entry & kLevel) != 0 &&
         (mode == apic::DeliveryMode::kFixed || mode == apic::DeliveryMode::kLowestPriority);
}

// Modes 011 and 110 are reserved.
bool IsValid(uint64_t entry) {
  const apic::DeliveryMode mode = ModeOf(entry);
  return mode != apic::DeliveryMode::kReserved3 && mode != apic::DeliveryMode::kStartUp;
}

}  // namespace

apic::Icr IoApicMessageOf(uint64_t entry) {
  apic::Icr message;
  message.vector = Vector(static_cast<uint8_t>(entry));
  message.mode = ModeOf(entry);
  message.logical = (entry & kLogical) != 0;
  message.level_triggered = IsLevel(entry);
  message.dest = static_cast<uint32_t>(entry >> 56);
  return message;
}

uint32_t IoApic::Read(uint64_t offset) const {
  switch (offset) {
    case kSelect:
      return select_;
    case kWindow:
      return ReadRegister(select_);
    default:
      return 0;
  }
}

uint32_t IoApic::ReadRegister(uint8_t index) const {
  switch (index) {
    case kId:
      return uint32_t{id_} << 24;
    case kVersion:
      return (kIoApicInputs - 1) << 16 | version_;
    case kArbitration:
      return uint32_t{arbitration_} << 24;
    default:
      break;
  }
  if (index < kFirstEntry || index >= kEndEntry) return 0;
  const uint64_t entry = entries_[(index - kFirstEntry) / 2u];
  return static_cast<uint32_t>((index & 1) != 0 ? entry >> 32 : entry);
}

IoApicMessages IoApic::Write(uint64_t offset, uint32_t value) {
  if (offset == kSelect) {
    select_ = static_cast<uint8_t>(value);
    return {};
  }
  if (offset == kEoi && version_ >= kVersionWithEoi) {
    return EndOfInterrupt(Vector(static_cast<uint8_t>(value)));
  }
  if (offset != kWindow) return {};
  if (select_ == kId) {
    id_ = static_cast<uint8_t>(value >> 24 & 15);
    arbitration_ = id_;  // 3.2.3: loaded when the ID is written
  }
  if (select_ < kFirstEntry || select_ >= kEndEntry) return {};
  const uint32_t input = (select_ - kFirstEntry) / 2u;
  WriteEntry(input, (select_ & 1) != 0, value);
  IoApicMessages messages;
  if (const auto message = ServeLevel(input)) messages.Add(*message);
  return messages;
}

void IoApic::WriteEntry(uint32_t input, bool high_half, uint32_t value) {
  uint64_t& entry = entries_[input];
  if (high_half) {
    entry = (entry & 0xffff'ffff) | (value & kWritableHigh) << 32;
    return;
  }
  entry = (entry & ~kWritableLow) | (value & kWritableLow);
  if (!IsLevel(entry)) entry &= ~kRemoteIrr;
}

bool IoApic::Asserted(uint32_t input) const {
  const bool high = (lines_ >> input & 1) != 0;
  return high != ((entries_[input] & kActiveLow) != 0);
}

std::optional<IoApicMessage> IoApic::SetLine(uint32_t input, bool high) {
  if (input >= kIoApicInputs) return std::nullopt;
  const bool was_asserted = Asserted(input);
  lines_ = high ? lines_ | 1u << input : lines_ & ~(1u << input);
  const uint64_t entry = entries_[input];
  if (IsLevel(entry)) return ServeLevel(input);
  // 3.2.4, bit 16: an edge on a masked input is ignored, not kept.
  const bool edge = Asserted(input) && !was_asserted;
  if (!edge || (entry & kMask) != 0 || !IsValid(entry)) return std::nullopt;
  return IoApicMessage{IoApicMessageOf(entry), input};
}

std::optional<IoApicMessage> IoApic::ServeLevel(uint32_t input) {
  uint64_t& entry = entries_[input];
  if (!IsLevel(entry) || !Asserted(input)) return std::nullopt;
  if ((entry & (kMask | kRemoteIrr)) != 0) return std::nullopt;
  entry |= kRemoteIrr;
  return IoApicMessage{IoApicMessageOf(entry), input};
}

void IoApic::NotAccepted(uint32_t input) { entries_[input] &= ~kRemoteIrr; }

IoApicMessages IoApic::Retry() {
  IoApicMessages messages;
  for (uint32_t input = 0; input < kIoApicInputs; ++input) {
    if (const auto message = ServeLevel(input)) messages.Add(*message);
  }
  return messages;
}

// 3.2.4, bit 14. The EOI carries the vector only: it ends every level entry that has it.
IoApicMessages IoApic::EndOfInterrupt(Vector vector) {
  IoApicMessages messages;
  for (uint32_t input = 0; input < kIoApicInputs; ++input) {
    uint64_t& entry = entries_[input];
    if (static_cast<uint8_t>(entry) != vector.value || !IsLevel(entry)) continue;
    entry &= ~kRemoteIrr;
    if (const auto message = ServeLevel(input)) messages.Add(*message);
  }
  return messages;
}

}  // namespace sipi
