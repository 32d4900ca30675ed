// Strong types for the numbers that bring-up code must never mix up. Freestanding: the guest, the
// APIC model and the VMM share them. APIC IDs: SDM vol 3A, 11.4.6 and 11.12.5 (32 bits in x2APIC
// mode); vectors: 11.5.2 (0 to 15 are illegal). Nothing of either section is checked here.
#pragma once

#include <compare>
#include <cstdint>

namespace sipi {

// A dense, zero-based logical CPU number. CPU 0 is the boot CPU. Never an APIC ID.
struct CpuNumber {
  uint32_t value = 0;
  constexpr CpuNumber() = default;
  constexpr explicit CpuNumber(uint32_t v) : value(v) {}
  constexpr auto operator<=>(const CpuNumber&) const = default;
};

// A local APIC ID: 8 bits in xAPIC mode, 32 bits in x2APIC mode (SDM vol 3A, 11.12.1). Never an
// index.
struct ApicId {
  uint32_t value = 0;
  constexpr ApicId() = default;
  constexpr explicit ApicId(uint32_t v) : value(v) {}
  constexpr auto operator<=>(const ApicId&) const = default;
};

// An interrupt vector, or the page number of a Start-Up IPI.
struct Vector {
  uint8_t value = 0;
  constexpr Vector() = default;
  constexpr explicit Vector(uint8_t v) : value(v) {}
  constexpr auto operator<=>(const Vector&) const = default;
};

// A guest-physical address.
struct Gpa {
  uint64_t value = 0;
  constexpr Gpa() = default;
  constexpr explicit Gpa(uint64_t v) : value(v) {}
  constexpr auto operator<=>(const Gpa&) const = default;
  constexpr Gpa operator+(uint64_t bytes) const { return Gpa(value + bytes); }
};

}  // namespace sipi
