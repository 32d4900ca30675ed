// 256 bits, one per vector: the form of IRR, ISR and TMR.
//
// Source: SDM vol 3A, 11.8.4 "Interrupt Acceptance for Fixed Interrupts", figure 11-20. That no
// vector below 16 gets into one is local_apic.cc's to see to.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "apic/regs/types.h"

namespace sipi::apic {

class VectorBitmap {
 public:
  constexpr bool Test(Vector v) const { return (words_[v.value / 64] >> v.value % 64 & 1) != 0; }
  constexpr void Set(Vector v) { words_[v.value / 64] |= uint64_t{1} << v.value % 64; }
  constexpr void Clear(Vector v) { words_[v.value / 64] &= ~(uint64_t{1} << v.value % 64); }
  constexpr void Assign(Vector v, bool on) { on ? Set(v) : Clear(v); }
  constexpr void ClearAll() { words_ = {}; }

  constexpr std::optional<Vector> Highest() const {
    for (size_t i = words_.size(); i-- > 0;) {
      if (words_[i] == 0) continue;
      const int bit = 63 - std::countl_zero(words_[i]);
      return Vector(static_cast<uint8_t>(i * 64 + static_cast<size_t>(bit)));
    }
    return std::nullopt;
  }

  // The eight 32-bit registers that software sees; `index` counts up from vectors 0 to 31.
  constexpr uint32_t Register(size_t index) const {
    return static_cast<uint32_t>(words_[index / 2] >> index % 2 * 32);
  }
  constexpr void SetRegister(size_t index, uint32_t value) {
    const unsigned shift = static_cast<unsigned>(index % 2 * 32);
    words_[index / 2] &= ~(uint64_t{0xffffffff} << shift);
    words_[index / 2] |= uint64_t{value} << shift;
  }

  constexpr bool operator==(const VectorBitmap&) const = default;

 private:
  std::array<uint64_t, 4> words_ = {};
};

}  // namespace sipi::apic
