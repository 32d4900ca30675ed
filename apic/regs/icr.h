// The interrupt command register as a value. Freestanding.
//
// Source: SDM vol 3A, 11.6.1 "Interrupt Command Register (ICR)" (xAPIC) and 11.12.9 "ICR Operation
// in x2APIC Mode". Which combinations are valid (table 11-3) is apic/model/router.h's; table 11-4
// is that of the P6 family and not used.
#pragma once

#include <cstdint>

#include "apic/regs/types.h"

namespace sipi::apic {

enum class DeliveryMode : uint8_t {  // ICR bits 10:8
  kFixed = 0,
  kLowestPriority = 1,
  kSmi = 2,
  kReserved3 = 3,
  kNmi = 4,
  kInit = 5,
  kStartUp = 6,
  kExtInt = 7,  // reserved in the ICR, legal in an LVT entry
};

enum class Shorthand : uint8_t {  // ICR bits 19:18
  kNone = 0,
  kSelf = 1,
  kAllIncludingSelf = 2,
  kAllExcludingSelf = 3,
};

inline constexpr uint32_t kIcrLogical = 1u << 11;         // destination mode
inline constexpr uint32_t kIcrDeliveryStatus = 1u << 12;  // read-only, xAPIC
inline constexpr uint32_t kIcrAssert = 1u << 14;          // level
inline constexpr uint32_t kIcrLevelTriggered = 1u << 15;  // trigger mode

// One interrupt command. `dest` holds 8 bits in xAPIC mode (ICR bits 63:56), 32 in x2APIC mode
// (bits 63:32).
struct Icr {
  Vector vector;
  DeliveryMode mode = DeliveryMode::kFixed;
  Shorthand shorthand = Shorthand::kNone;
  bool logical = false;
  bool assert_level = true;
  bool level_triggered = false;
  uint32_t dest = 0;

  constexpr uint32_t Low() const {
    return static_cast<uint32_t>(vector.value) | static_cast<uint32_t>(mode) << 8 |
           (logical ? kIcrLogical : 0) | (assert_level ? kIcrAssert : 0) |
           (level_triggered ? kIcrLevelTriggered : 0) | static_cast<uint32_t>(shorthand) << 18;
  }
  constexpr uint32_t XApicHigh() const { return dest << 24; }
  constexpr uint64_t X2Apic() const { return static_cast<uint64_t>(dest) << 32 | Low(); }

  static constexpr Icr FromLow(uint32_t low, uint32_t dest) {
    Icr icr;
    icr.vector = Vector(static_cast<uint8_t>(low));
    icr.mode = static_cast<DeliveryMode>(low >> 8 & 7);
    icr.shorthand = static_cast<Shorthand>(low >> 18 & 3);
    icr.logical = (low & kIcrLogical) != 0;
    icr.assert_level = (low & kIcrAssert) != 0;
    icr.level_triggered = (low & kIcrLevelTriggered) != 0;
    icr.dest = dest;
    return icr;
  }
  static constexpr Icr FromXApic(uint32_t high, uint32_t low) { return FromLow(low, high >> 24); }
  static constexpr Icr FromX2Apic(uint64_t value) {
    return FromLow(static_cast<uint32_t>(value), static_cast<uint32_t>(value >> 32));
  }
};

}  // namespace sipi::apic
