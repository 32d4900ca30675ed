// What a register access gives back: a value, a fault, or work for the caller. docs/apic.md has the
// table of what the caller does; tests/fuzz holds both sides to it. Faults: SDM vol 3A, 11.12.1.3
// and 11.12.5; the broadcast of an EOI: 11.8.5.
#pragma once

#include <cstdint>

#include "apic/regs/icr.h"
#include "apic/regs/types.h"

namespace sipi::apic {

// A RDMSR in the x2APIC range.
struct ReadResult {
  bool fault = false;  // raise #GP(0); `value` means nothing
  uint64_t value = 0;
};

// What the caller must do after a write. At most one thing; whatever it is, an interrupt may have
// become deliverable (a timer that had expired, an APIC error), so ask HighestDeliverable() before
// the guest goes on.
struct [[nodiscard]] WriteEffect {
  enum class Kind : uint8_t {
    kNone,        // nothing
    kIpi,         // send `icr`: RoutingTable::ForEachTarget finds its targets
    kSelfIpi,     // nothing to send: the vector of `icr` is in this APIC's IRR already
    kEoi,         // `eoi_vector` ended; if `eoi_level`, broadcast that to the I/O APICs
    kPriority,    // the task priority changed
    kTimer,       // NextDeadlineNs() changed: re-arm or cancel the host's timer
    kRouting,     // Routing() changed: publish it, and re-arm the timer, which a software disable
                  // masks
    kModeChange,  // IA32_APIC_BASE changed: publish Routing() and the BSP flag (StartupMailbox::
                  // SetBsp), re-arm the timer, move or remove the MMIO page
  };
  static WriteEffect Of(Kind kind) {
    WriteEffect effect;
    effect.kind = kind;
    return effect;
  }
  static WriteEffect Fault() {
    WriteEffect effect;
    effect.fault = true;
    return effect;
  }
  bool fault = false;  // raise #GP(0); nothing was written
  Kind kind = Kind::kNone;
  Icr icr;
  Vector eoi_vector;
  bool eoi_level = false;
};

}  // namespace sipi::apic
