// APICs in the two states that nearly every test starts from.
#pragma once

#include "apic/model/local_apic.h"

namespace sipi::apic {

// Software-enabled, in xAPIC mode.
inline LocalApic EnabledXApic(ApicId id = ApicId(3)) {
  LocalApic apic(id, false);
  (void)apic.WriteMmio(0x0f0, 0x1ff, Time{});
  return apic;
}

// Software-enabled, in x2APIC mode.
inline LocalApic EnabledX2Apic(ApicId id = ApicId(3)) {
  LocalApic apic(id, false);
  apic.Reset(false, ApicMode::kX2Apic);
  (void)apic.WriteMsr(0x80f, 0x1ff, Time{});
  return apic;
}

// An instant of which only the bus clock matters.
inline Time AtNs(uint64_t ns) { return Time{.ns = ns, .tsc = 0}; }

}  // namespace sipi::apic
