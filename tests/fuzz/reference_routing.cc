#include "tests/fuzz/reference_routing.h"

namespace sipi::apic::fuzz {
namespace {

bool AnswersAtAll(const Icr& icr, const LocalApic& target) {
  if (target.mode() == ApicMode::kDisabled) return false;
  switch (icr.mode) {  // 11.4.7.2
    case DeliveryMode::kSmi:
    case DeliveryMode::kNmi:
    case DeliveryMode::kInit:
    case DeliveryMode::kStartUp:
      return true;
    default:
      return target.software_enabled();
  }
}

// Table 11-3, without the destination.
bool Sendable(const Icr& icr, bool from_device) {
  if (icr.mode == DeliveryMode::kReserved3) return false;
  if (from_device) return icr.mode != DeliveryMode::kStartUp;
  if (icr.mode == DeliveryMode::kExtInt) return false;
  if (icr.mode == DeliveryMode::kInit && icr.level_triggered && !icr.assert_level) return false;
  const bool self_too =
      icr.shorthand == Shorthand::kSelf || icr.shorthand == Shorthand::kAllIncludingSelf;
  return !self_too || icr.mode == DeliveryMode::kFixed;
}

bool AnswersLogically(uint32_t dest, const LocalApic& target) {
  if (target.mode() == ApicMode::kX2Apic) {  // 11.12.10.1
    const uint32_t id = target.id().value;
    return dest >> 16 == (id >> 4 & 0xffff) && (dest >> (id & 15) & 1) != 0;
  }
  if (dest > 0xff) return false;
  const uint32_t logical_id = target.Ldr() >> 24;
  switch (target.Routing().dfr_model) {  // 11.6.2.2
    case 0xf:
      return (logical_id & dest) != 0;
    case 0:
      return (logical_id & 0xf0) == (dest & 0xf0) && (logical_id & dest & 15) != 0;
    default:
      return false;
  }
}

}  // namespace

bool Reaches(const Icr& icr, const LocalApic* sender, const LocalApic& target,
             std::optional<uint8_t> written_id) {
  if (!Sendable(icr, sender == nullptr) || !AnswersAtAll(icr, target)) return false;
  if (sender != nullptr) {
    if (sender->mode() == ApicMode::kDisabled) return false;
    switch (icr.shorthand) {
      case Shorthand::kSelf:
        return sender == &target;
      case Shorthand::kAllIncludingSelf:
        return true;
      case Shorthand::kAllExcludingSelf:
        return sender != &target;
      case Shorthand::kNone:
        break;
    }
  }
  const bool wide = sender != nullptr && sender->mode() == ApicMode::kX2Apic;
  if (icr.dest == (wide ? 0xffffffff : 0xff)) return true;
  if (icr.logical) return AnswersLogically(icr.dest, target);
  // 11.4.6: software's ID counts in xAPIC mode alone.
  const bool renamed = target.mode() == ApicMode::kXApic && written_id.has_value();
  return icr.dest == (renamed ? *written_id : target.id().value);
}

}  // namespace sipi::apic::fuzz
