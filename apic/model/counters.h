// What one APIC did, counted per kind of delivery (SDM vol 3A, 11.6.1 and 11.8.4): raw material for
// benchmarks and reports. No register of the SDM's shows them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "apic/regs/icr.h"

namespace sipi::apic {

struct ApicCounters {
  std::array<uint64_t, 8> ipi_sent = {};  // by DeliveryMode; includes self IPIs
  uint64_t self_ipi = 0;                  // of those, fixed ones to itself
  uint64_t broadcast_ipi = 0;             // of those, sent with an all-CPUs shorthand
  uint64_t accepted = 0;                  // fixed interrupts put into IRR
  uint64_t merged = 0;                    // arrived while their vector was pending already
  uint64_t refused = 0;                   // arrived while disabled, or with an illegal vector
  uint64_t acknowledged = 0;              // IRR -> ISR
  uint64_t eoi = 0;                       // EOIs that ended something
  uint64_t timer_expired = 0;             // timer expiries, masked or not
  uint64_t inits = 0;                     // INIT resets
  uint64_t spurious = 0;                  // spurious vectors handed out, 11.9

  constexpr uint64_t Sent(DeliveryMode mode) const { return ipi_sent[static_cast<size_t>(mode)]; }
};

}  // namespace sipi::apic
