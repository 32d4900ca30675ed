// Who gets an interrupt message: destination matching and routing.
//
// Source: SDM vol 3A, 11.6.1 (table 11-3, valid combinations), 11.6.2 "Determining IPI Destination"
// and 11.12.10 for x2APIC mode.
//
// APIC IDs are 32 bits wide and sparse; CPU numbers are dense. A physical or x2APIC-logical message
// costs one hash look-up per target, whatever the number of CPUs. Senders take no lock: each CPU's
// mutable routing state is one relaxed atomic word, published by its owner.
//
// Where the SDM leaves a choice:
// - A sender's mode decides what broadcast is: FFH in xAPIC mode and for devices, FFFFFFFFH in
//   x2APIC mode. A target's mode decides how it reads a logical destination, as in KVM; a CPU in
//   xAPIC mode never matches one wider than 8 bits.
// - A CPU in xAPIC mode whose ID is above 255 answers to its whole ID and to broadcasts, so that an
//   x2APIC sender can start it; not to the low 8 bits, which would be another CPU's.
// - A CPU whose xAPIC ID software has changed answers to the new one only, together with whoever
//   else has it.
// - Lowest priority: the least task priority published; among equals, the vector chooses. With
//   "all excluding self" it never comes back to the sender.
// - Level-triggered IPIs count as edge-triggered (table 11-3, note 2), and the level bit has no
//   meaning, but for INIT: level 0 with level trigger stays the de-assert message of old, which
//   changes nothing (11.4.7.4).
// Not modelled: focus processor (11.6.2.4: not supported since Xeon), redirection hint, interrupt
// remapping, the arbitration ID (11.7: of the APIC bus).
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "apic/model/routing_state.h"
#include "apic/regs/icr.h"
#include "apic/regs/types.h"

namespace sipi::apic {

// Does this command reach anybody at all? Table 11-3: with the shorthands "self" and "all including
// self" only Fixed is valid; anything else has no effect here. So have the reserved delivery modes
// 3 (remote read, in the parts that had an APIC bus) and 7 (ExtINT, which only an LVT entry or a
// device can send), and INIT level de-assert (level trigger, level 0), which since the Pentium 4
// does nothing.
constexpr bool IsDeliverable(const Icr& icr) {
  switch (icr.mode) {
    case DeliveryMode::kReserved3:
    case DeliveryMode::kExtInt:
      return false;
    case DeliveryMode::kInit:
      if (icr.level_triggered && !icr.assert_level) return false;
      break;
    default:
      break;
  }
  const bool hits_self =
      icr.shorthand == Shorthand::kSelf || icr.shorthand == Shorthand::kAllIncludingSelf;
  return !hits_self || icr.mode == DeliveryMode::kFixed;
}

// Does a CPU in this state answer to this logical destination? Broadcast is the caller's affair.
constexpr bool MatchesLogical(const RoutingState& state, uint32_t dest) {
  switch (state.mode) {
    case ApicMode::kDisabled:
      return false;
    case ApicMode::kXApic:
      return dest <= 0xff && XApicLogicalMatch(state.ldr, uint32_t{state.dfr_model} << 28,
                                               static_cast<uint8_t>(dest));
    case ApicMode::kX2Apic:
      return state.ldr >> 16 == dest >> 16 && (state.ldr & dest & 0xffff) != 0;
  }
  return false;
}

class RoutingTable {
 public:
  // ids[i] is the APIC ID of CpuNumber(i). Precondition: IdsAreValid(ids). Every CPU starts out
  // disabled: nothing reaches it before the first Publish().
  explicit RoutingTable(std::span<const ApicId> ids);

  // At least one, all different, none of them the broadcast ID FFFFFFFFH.
  static bool IdsAreValid(std::span<const ApicId> ids);

  uint32_t size() const { return static_cast<uint32_t>(ids_.size()); }
  ApicId id(CpuNumber cpu) const { return ids_[cpu.value]; }
  std::optional<CpuNumber> Find(ApicId id) const;

  // Any thread may read; only the owner of `cpu` publishes.
  RoutingState State(CpuNumber cpu) const { return RoutingState::Unpack(Word(cpu.value)); }
  void Publish(CpuNumber cpu, const RoutingState& state);

  // Calls fn(CpuNumber) once for each CPU that the sender's message reaches.
  template <class Fn>
  void ForEachTarget(const Icr& icr, CpuNumber sender, Fn&& fn) const;

  // The same for an I/O APIC or MSI message: 8-bit destination, no shorthand.
  template <class Fn>
  void ForEachDeviceTarget(const Icr& icr, Fn&& fn) const;

 private:
  struct Slot {
    uint32_t id = 0;
    uint32_t cpu = kEmpty;
  };
  static constexpr uint32_t kEmpty = 0xffffffff;
  static constexpr uint32_t kNobody = 0xffffffff;

  uint64_t Word(uint32_t cpu) const { return words_[cpu].load(std::memory_order_relaxed); }
  std::atomic<uint64_t>& XApicCpus() const { return words_[ids_.size()]; }
  std::atomic<uint64_t>& WrittenIds() const { return words_[ids_.size() + 1]; }
  size_t Hash(uint32_t id) const { return id * 0x9e3779b1u >> hash_shift_; }
  // 11.4.7.2: a software-disabled APIC responds to INIT, NMI, SMI and SIPI only; fixed, lowest
  // priority and ExtINT need a software-enabled one.
  static bool Reachable(uint64_t word, uint64_t required) { return (word & required) != 0; }
  static uint64_t RequiredBits(const Icr& icr);

  template <class Fn>
  void ForEachMatch(const Icr& icr, bool broadcast, uint32_t except, Fn&& fn) const;
  template <class Fn>
  void ForEachPhysical(uint32_t dest, uint64_t required, Fn&& fn) const;
  template <class Fn>
  void ForEachLogical(uint32_t dest, uint64_t required, Fn&& fn) const;
  template <class Fn>
  void Dispatch(const Icr& icr, bool broadcast, uint32_t except, Fn&& fn) const;

  std::vector<ApicId> ids_;
  std::vector<Slot> slots_;  // open addressing, a power of two, at most half full
  unsigned hash_shift_ = 0;
  // RoutingState::Pack() by CpuNumber; after them, how many CPUs are in xAPIC mode, and how many
  // have a written ID.
  std::unique_ptr<std::atomic<uint64_t>[]> words_;
};

}  // namespace sipi::apic

#include "apic/model/router_inl.h"
