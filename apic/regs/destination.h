// Logical destinations: LDR, DFR and the x2APIC logical ID. Freestanding.
//
// Source: SDM vol 3A, 11.6.2.2 "Logical Destination Mode" and 11.12.10 "Determining IPI Destination
// in x2APIC Mode". Of the cluster model's two forms the flat one; to software the hierarchical one,
// which needs cluster managers in the chipset, looks the same.
#pragma once

#include <cstdint>

#include "apic/regs/types.h"

namespace sipi::apic {

inline constexpr uint32_t kXApicBroadcast = 0xff;         // 11.6.2.1
inline constexpr uint32_t kX2ApicBroadcast = 0xffffffff;  // 11.12.9

inline constexpr uint32_t kLdrXApicMask = 0xff000000;  // LDR bits 31:24, the rest is reserved
inline constexpr uint32_t kDfrFixedOnes = 0x0fffffff;  // DFR bits 27:0 read as 1
inline constexpr uint32_t kDfrFlat = 0xffffffff;       // model 1111, also the reset value
inline constexpr uint32_t kDfrCluster = 0x0fffffff;    // model 0000

// 11.12.10.2: "Logical x2APIC ID = [(x2APIC ID[19:4] << 16) | (1 << x2APIC ID[3:0])]".
constexpr uint32_t X2ApicLogicalId(ApicId id) {
  return (id.value >> 4 & 0xffff) << 16 | 1u << (id.value & 15);
}

// Does an xAPIC-mode CPU with this LDR and DFR answer to an 8-bit logical destination? Broadcast
// (FFH) is the caller's affair. A DFR model other than flat and cluster is reserved: no match.
constexpr bool XApicLogicalMatch(uint32_t ldr, uint32_t dfr, uint8_t dest) {
  const uint32_t logical_id = ldr >> 24;
  switch (dfr >> 28) {
    case 0xf:
      return (logical_id & dest) != 0;
    case 0x0:
      return logical_id >> 4 == uint32_t{dest} >> 4 && (logical_id & dest & 0xf) != 0;
    default:
      return false;
  }
}

static_assert(X2ApicLogicalId(ApicId(32)) == 0x00020001);
static_assert(X2ApicLogicalId(ApicId(47)) == 0x00028000);

}  // namespace sipi::apic
