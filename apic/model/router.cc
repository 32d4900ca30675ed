// The routing table's construction and look-up by APIC ID (SDM vol 3A, 11.4.6, 11.6.2.1). Which
// CPUs a message is for (11.6.1, 11.6.2, 11.11) is in router_inl.h; router.h says what is left out.
#include "apic/model/router.h"

#include <algorithm>
#include <cassert>

namespace sipi::apic {

bool RoutingTable::IdsAreValid(std::span<const ApicId> ids) {
  std::vector<uint32_t> sorted;
  sorted.reserve(ids.size());
  for (const ApicId id : ids) sorted.push_back(id.value);
  std::sort(sorted.begin(), sorted.end());
  if (sorted.empty() || sorted.back() == kX2ApicBroadcast) return false;
  return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
}

RoutingTable::RoutingTable(std::span<const ApicId> ids)
    : ids_(ids.begin(), ids.end()),
      words_(std::make_unique<std::atomic<uint64_t>[]>(ids.size() + 2)) {
  assert(IdsAreValid(ids));
  const size_t capacity = std::bit_ceil(std::max<size_t>(2, ids.size() * 2));
  slots_.resize(capacity);
  hash_shift_ = 32 - static_cast<unsigned>(std::countr_zero(capacity));
  const uint64_t disabled = RoutingState().Pack();
  for (uint32_t cpu = 0; cpu < ids_.size(); ++cpu) {
    words_[cpu].store(disabled, std::memory_order_relaxed);
    size_t slot = Hash(ids_[cpu].value);
    while (slots_[slot].cpu != kEmpty) slot = (slot + 1) & (capacity - 1);
    slots_[slot] = {ids_[cpu].value, cpu};
  }
}

std::optional<CpuNumber> RoutingTable::Find(ApicId id) const {
  for (size_t slot = Hash(id.value); slots_[slot].cpu != kEmpty;
       slot = (slot + 1) & (slots_.size() - 1)) {
    if (slots_[slot].id == id.value) return CpuNumber(slots_[slot].cpu);
  }
  return std::nullopt;
}

void RoutingTable::Publish(CpuNumber cpu, const RoutingState& state) {
  RoutingState published = state;
  if (published.mode == ApicMode::kDisabled) published.software_enabled = false;
  const RoutingState before = State(cpu);
  const bool was_xapic = before.mode == ApicMode::kXApic;
  const bool is_xapic = published.mode == ApicMode::kXApic;
  // The counts may be too high for a moment, never too low: a sender that sees the word finds it.
  if (is_xapic && !was_xapic) XApicCpus().fetch_add(1, std::memory_order_relaxed);
  if (published.has_written_id && !before.has_written_id) {
    WrittenIds().fetch_add(1, std::memory_order_relaxed);
  }
  words_[cpu.value].store(published.Pack(), std::memory_order_release);
  if (before.has_written_id && !published.has_written_id) {
    WrittenIds().fetch_sub(1, std::memory_order_relaxed);
  }
  if (was_xapic && !is_xapic) XApicCpus().fetch_sub(1, std::memory_order_relaxed);
}

uint64_t RoutingTable::RequiredBits(const Icr& icr) {
  switch (icr.mode) {
    case DeliveryMode::kSmi:
    case DeliveryMode::kNmi:
    case DeliveryMode::kInit:
    case DeliveryMode::kStartUp:
      return RoutingState::kModeBits;  // some mode: not kDisabled
    default:
      return RoutingState::kEnabledBit;
  }
}

}  // namespace sipi::apic
