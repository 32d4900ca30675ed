// The templates of router.h. Include that one.
//
// Source: SDM vol 3A, 11.6.2.1 to 11.6.2.4, 11.11 (messages of devices), 11.12.10.
#pragma once

#include "apic/model/router.h"

namespace sipi::apic {

template <class Fn>
void RoutingTable::ForEachTarget(const Icr& icr, CpuNumber sender, Fn&& fn) const {
  if (!IsDeliverable(icr)) return;
  const ApicMode mode = State(sender).mode;
  if (mode == ApicMode::kDisabled) return;
  switch (icr.shorthand) {
    case Shorthand::kSelf:  // "the destination field is ignored" with every shorthand
      if (Reachable(Word(sender.value), RequiredBits(icr))) fn(sender);
      return;
    case Shorthand::kAllIncludingSelf:
      return Dispatch(icr, true, kNobody, fn);
    case Shorthand::kAllExcludingSelf:
      return Dispatch(icr, true, sender.value, fn);
    case Shorthand::kNone:
      break;
  }
  const uint32_t everybody = mode == ApicMode::kX2Apic ? kX2ApicBroadcast : kXApicBroadcast;
  Dispatch(icr, icr.dest == everybody, kNobody, fn);
}

template <class Fn>
void RoutingTable::ForEachDeviceTarget(const Icr& icr, Fn&& fn) const {
  // 11.11.2: delivery modes 3 and 6 are reserved in a message from a device; ExtINT is legal.
  if (icr.mode == DeliveryMode::kReserved3 || icr.mode == DeliveryMode::kStartUp) return;
  Dispatch(icr, icr.dest == kXApicBroadcast, kNobody, fn);
}

template <class Fn>
void RoutingTable::Dispatch(const Icr& icr, bool broadcast, uint32_t except, Fn&& fn) const {
  if (icr.mode != DeliveryMode::kLowestPriority) return ForEachMatch(icr, broadcast, except, fn);
  // 11.6.2.4: one of them. One pass, so that a state which changes meanwhile loses no message:
  // the least priority wins, then the first CPU at or after the vector's number, going round.
  const uint32_t start = icr.vector.value % size();
  uint64_t best = ~uint64_t{0};
  CpuNumber chosen(kNobody);
  ForEachMatch(icr, broadcast, except, [&](CpuNumber cpu) {
    const uint32_t distance = cpu.value >= start ? cpu.value - start : cpu.value + size() - start;
    const uint64_t rank = uint64_t{State(cpu).priority} << 32 | distance;
    if (rank >= best) return;
    best = rank;
    chosen = cpu;
  });
  if (chosen.value != kNobody) fn(chosen);
}

template <class Fn>
void RoutingTable::ForEachMatch(const Icr& icr, bool broadcast, uint32_t except, Fn&& fn) const {
  const uint64_t required = RequiredBits(icr);
  if (broadcast) {
    const uint32_t count = size();
    for (uint32_t cpu = 0; cpu < count; ++cpu) {
      if (cpu != except && Reachable(Word(cpu), required)) fn(CpuNumber(cpu));
    }
    return;
  }
  if (icr.logical) return ForEachLogical(icr.dest, required, fn);
  ForEachPhysical(icr.dest, required, fn);
}

template <class Fn>
void RoutingTable::ForEachPhysical(uint32_t dest, uint64_t required, Fn&& fn) const {
  if (WrittenIds().load(std::memory_order_relaxed) == 0) {
    const std::optional<CpuNumber> cpu = Find(ApicId(dest));
    if (cpu && Reachable(Word(cpu->value), required)) fn(*cpu);
    return;
  }
  // IDs need not be unique any more: ask each CPU.
  for (uint32_t cpu = 0; cpu < size(); ++cpu) {
    const uint64_t word = Word(cpu);
    const RoutingState state = RoutingState::Unpack(word);
    const uint32_t id = state.has_written_id ? state.written_id : ids_[cpu].value;
    if (id == dest && Reachable(word, required)) fn(CpuNumber(cpu));
  }
}

template <class Fn>
void RoutingTable::ForEachLogical(uint32_t dest, uint64_t required, Fn&& fn) const {
  // x2APIC mode: the logical ID follows from the ID (11.12.10.2), so the sixteen candidates of a
  // cluster are found by ID. IDs of 2^20 and above share a logical ID with a lower one; those
  // machines do not exist.
  const uint32_t cluster = dest >> 16;
  for (uint32_t mask = dest & 0xffff; mask != 0; mask &= mask - 1) {
    const uint32_t bit = static_cast<uint32_t>(std::countr_zero(mask));
    const std::optional<CpuNumber> cpu = Find(ApicId(cluster << 4 | bit));
    if (!cpu) continue;
    const uint64_t word = Word(cpu->value);
    if (RoutingState::Unpack(word).mode == ApicMode::kX2Apic && Reachable(word, required)) {
      fn(*cpu);
    }
  }
  // xAPIC mode: software gave the logical IDs, so ask each CPU; only 8-bit destinations match.
  if (dest > 0xff || XApicCpus().load(std::memory_order_relaxed) == 0) return;
  for (uint32_t cpu = 0; cpu < size(); ++cpu) {
    const uint64_t word = Word(cpu);
    const RoutingState state = RoutingState::Unpack(word);
    if (state.mode == ApicMode::kXApic && Reachable(word, required) &&
        MatchesLogical(state, dest)) {
      fn(CpuNumber(cpu));
    }
  }
}

}  // namespace sipi::apic
