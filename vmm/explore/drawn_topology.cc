#include "vmm/explore/drawn_topology.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace sipi {
namespace {

constexpr uint32_t kXApicIds = 255;  // 255 is xAPIC's broadcast

uint32_t Width(uint32_t count) { return static_cast<uint32_t>(std::bit_width(count - 1)); }

// Elements from `first` on in another order.
template <class T>
void Shuffle(Draws& draws, size_t first, std::vector<T>& list) {
  for (size_t i = list.size(); i > first + 1; --i) {
    std::swap(list[i - 1], list[first + draws.Below(i - first)]);
  }
}

// CPUs in the order of their places: core by core, thread by thread.
Topology InOrder(uint32_t cpus, uint32_t threads, uint32_t packages) {
  Topology topology;
  const uint32_t cores = cpus / threads;
  topology.threads_per_core = threads;
  topology.cores_per_die = (cores + packages - 1) / packages;
  topology.sockets = packages;
  for (uint32_t cpu = 0; cpu < cpus; ++cpu) {
    CpuPlace place;
    place.core_index = cpu / threads;
    place.package = place.core_index / topology.cores_per_die;
    place.core = place.core_index % topology.cores_per_die;
    place.thread = cpu % threads;
    topology.places.push_back(place);
  }
  return topology;
}

// IDs by their fields, each core's wider by `gap` bits than it must be, from `base` on.
void AssignIds(uint32_t gap, uint32_t base, Topology& topology) {
  topology.core_shift = Width(topology.threads_per_core) + gap;
  topology.die_shift = topology.package_shift = topology.core_shift + Width(topology.cores_per_die);
  for (CpuPlace& place : topology.places) {
    place.apic_id = ApicId(base + (place.package << topology.package_shift |
                                   place.core << topology.core_shift | place.thread));
  }
}

// The boot CPU is its core's primary thread, and a core has one.
void NamePrimaries(std::vector<CpuPlace>& places) {
  for (CpuPlace& place : places) {
    const bool primary_there =
        std::any_of(places.begin(), places.end(), [&place](const CpuPlace& other) {
          return other.core_index == place.core_index && other.thread == 0;
        });
    if (!primary_there) place.thread = 0;
  }
  CpuPlace& boot = places.front();
  if (boot.thread == 0) return;
  for (CpuPlace& place : places) {
    if (place.core_index == boot.core_index && place.thread == 0) place.thread = boot.thread;
  }
  boot.thread = 0;
}

// Cores and packages by numbers without gaps: the guest counts them in arrays.
void NumberDensely(std::vector<CpuPlace>& places) {
  std::map<uint32_t, uint32_t> cores;
  std::map<uint32_t, uint32_t> packages;
  for (CpuPlace& place : places) {
    place.core_index =
        cores.try_emplace(place.core_index, static_cast<uint32_t>(cores.size())).first->second;
    place.package =
        packages.try_emplace(place.package, static_cast<uint32_t>(packages.size())).first->second;
  }
}

}  // namespace

Topology DrawTopology(Draws& draws, uint32_t cpus, abi::ApicMode mode) {
  static constexpr uint32_t kBases[] = {0, 0, 8, 240, 256, 4096, 0x10000};
  const uint32_t threads = draws.OneIn(2) && cpus % 2 == 0 ? 2 : 1;
  const uint32_t packages = draws.OneIn(4) && cpus / threads > 1 ? 2 : 1;
  Topology topology = InOrder(cpus, threads, packages);
  const bool plain = draws.OneIn(2);
  const auto gap = static_cast<uint32_t>(draws.Below(4));
  uint32_t base = kBases[draws.Below(std::size(kBases))];
  if (plain) {
    AssignIds(0, 0, topology);
    for (uint32_t cpu = 0; cpu < cpus; ++cpu) topology.places[cpu].apic_id = ApicId(cpu);
    return topology;
  }
  AssignIds(gap, 0, topology);
  const uint32_t end = topology.max_apic_id().value + 1;
  if (mode == abi::ApicMode::kXApic && base + end > kXApicIds) base = 0;
  AssignIds(gap, base, topology);
  // The boot CPU's ID is the lowest one in half of them, as firmware mostly has it.
  Shuffle(draws, draws.OneIn(2) ? 1 : 0, topology.places);
  NamePrimaries(topology.places);
  return topology;
}

std::vector<uint32_t> DrawOrder(Draws& draws, uint32_t cpus) {
  std::vector<uint32_t> order(cpus - 1);
  std::iota(order.begin(), order.end(), 1u);
  if (draws.OneIn(2)) Shuffle(draws, 0, order);
  return order;
}

void DropLastCpu(Topology& topology) {
  topology.places.pop_back();
  NamePrimaries(topology.places);
  NumberDensely(topology.places);
}

void UsePlainPlaces(Topology& topology) {
  for (size_t cpu = 0; cpu < topology.places.size(); ++cpu) {
    topology.places[cpu].package = 0;
    topology.places[cpu].apic_id = ApicId(static_cast<uint32_t>(cpu));
  }
}

std::string DescribeTopology(const Topology& topology) {
  std::string text;
  uint32_t packages = 0;
  bool siblings = false;
  bool plain = true;
  std::vector<uint32_t> ids;
  for (const CpuPlace& place : topology.places) {
    packages = std::max(packages, place.package + 1);
    siblings = siblings || place.thread != 0;
    plain = plain && place.apic_id.value == ids.size();
    ids.push_back(place.apic_id.value);
  }
  if (siblings) absl::StrAppend(&text, ", siblings");
  if (packages > 1) absl::StrAppend(&text, ", ", packages, " packages");
  if (!plain) absl::StrAppend(&text, ", APIC IDs ", absl::StrJoin(ids, ","));
  return text;
}

std::string DescribeOrder(const std::vector<uint32_t>& order) {
  if (std::is_sorted(order.begin(), order.end())) return "";
  return absl::StrCat(", order ", absl::StrJoin(order, ","));
}

}  // namespace sipi
