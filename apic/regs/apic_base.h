// IA32_APIC_BASE as a state machine: the APIC's mode and the legal ways to change it. Freestanding.
//
// Source: SDM vol 3A, 11.4.4 "Local APIC Status and Location" and 11.12.5 "x2APIC State
// Transitions", figure 11-27.
//
// Where the SDM leaves a choice:
// - The BSP flag (bit 8) can be written, as the table of MSRs in vol 4 has it (R/W).
// - An APIC that was disabled can be enabled again without a reset (11.4.3 says that processors
//   with the 3-wire bus could not).
// - The base can be moved in every mode; in x2APIC mode nothing is there to be seen of it.
#pragma once

#include <cstdint>

#include "apic/regs/registers.h"

namespace sipi::apic {

enum class ApicMode : uint8_t {
  kDisabled = 0,  // EN = 0, EXTD = 0
  kXApic = 1,     // EN = 1, EXTD = 0
  kX2Apic = 2,    // EN = 1, EXTD = 1
};

// Precondition: not the invalid EN = 0, EXTD = 1, which no APIC can be in.
constexpr ApicMode ApicModeOf(uint64_t apic_base) {
  if ((apic_base & kApicBaseEnable) == 0) return ApicMode::kDisabled;
  return (apic_base & kApicBaseX2Apic) != 0 ? ApicMode::kX2Apic : ApicMode::kXApic;
}

// The page-aligned physical address of the xAPIC register page.
constexpr uint64_t ApicBaseAddress(uint64_t apic_base) { return apic_base & ~uint64_t{0xfff}; }

// Bits that fault when written as 1: 7:0, 9, those above the physical address width and, without
// x2APIC, EXTD.
constexpr uint64_t ApicBaseReserved(uint32_t phys_addr_bits, bool has_x2apic) {
  const uint64_t above = phys_addr_bits >= 64 ? 0 : ~uint64_t{0} << phys_addr_bits;
  return above | 0xff | 1u << 9 | (has_x2apic ? 0 : kApicBaseX2Apic);
}

// May a WRMSR take IA32_APIC_BASE from `from` to `to`? If not, it raises #GP(0).
constexpr bool ApicBaseWriteIsLegal(uint64_t from, uint64_t to, uint64_t reserved) {
  if ((to & reserved) != 0) return false;
  const bool enable = (to & kApicBaseEnable) != 0;
  const bool x2apic = (to & kApicBaseX2Apic) != 0;
  if (x2apic && !enable) return false;  // the invalid state
  switch (ApicModeOf(from)) {
    case ApicMode::kDisabled:
      return !x2apic;  // to x2APIC only by way of xAPIC
    case ApicMode::kX2Apic:
      return x2apic || !enable;  // to xAPIC only by way of disabled
    case ApicMode::kXApic:
      break;
  }
  return true;
}

}  // namespace sipi::apic
