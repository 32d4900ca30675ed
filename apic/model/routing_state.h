// What other CPUs must know of an APIC in order to send it an interrupt, packed in one word.
//
// What of it matters when: SDM vol 3A, 11.4.3 and 11.4.7.2 (disabled CPUs), 11.6.2 (destinations),
// 11.6.2.4 and 11.8.3.1 (task priority).
//
// The owner publishes the word, senders read it with a relaxed load: no lock on the IPI path. What
// the target decides by itself, when the message is there (IRR, illegal vectors), is not in it.
#pragma once

#include <cstdint>

#include "apic/regs/apic_base.h"
#include "apic/regs/destination.h"

namespace sipi::apic {

struct RoutingState {
  ApicMode mode = ApicMode::kDisabled;
  bool software_enabled = false;  // SVR bit 8; fixed interrupts need it, INIT, SIPI and NMI do not
  uint8_t priority = 0;           // task priority, for lowest-priority arbitration only
  uint8_t dfr_model = 0xf;        // DFR bits 31:28, xAPIC only
  bool has_written_id = false;    // answers to written_id in the place of its ID, xAPIC only
  uint8_t written_id = 0;
  uint32_t ldr = 0;  // LDR; in x2APIC mode the logical x2APIC ID

  // Where Pack() puts what a sender asks of the word as a whole.
  static constexpr unsigned kModeShift = 36;
  static constexpr unsigned kEnabledShift = 38;
  static constexpr uint64_t kModeBits = uint64_t{3} << kModeShift;  // all 0: kDisabled
  static constexpr uint64_t kEnabledBit = uint64_t{1} << kEnabledShift;

  constexpr uint64_t Pack() const {
    return uint64_t{ldr} | uint64_t{dfr_model} << 32 |
           uint64_t{static_cast<uint8_t>(mode)} << kModeShift |
           uint64_t{software_enabled} << kEnabledShift | uint64_t{has_written_id} << 39 |
           uint64_t{priority} << 40 | uint64_t{written_id} << 48;
  }
  static constexpr RoutingState Unpack(uint64_t word) {
    RoutingState state;
    state.ldr = static_cast<uint32_t>(word);
    state.dfr_model = static_cast<uint8_t>(word >> 32 & 0xf);
    state.mode = static_cast<ApicMode>((word & kModeBits) >> kModeShift);
    state.software_enabled = (word & kEnabledBit) != 0;
    state.has_written_id = (word >> 39 & 1) != 0;
    state.priority = static_cast<uint8_t>(word >> 40);
    state.written_id = static_cast<uint8_t>(word >> 48);
    return state;
  }
  constexpr bool operator==(const RoutingState&) const = default;
};

}  // namespace sipi::apic
