#include "vmm/cpu/cpuid.h"

#include <algorithm>

namespace sipi {
namespace {

// Leaf numbers, SDM vol 2A, CPUID; 8000xxxxH: APM vol 3, appendix E.
constexpr uint32_t kLeafVendor = 0x0;
constexpr uint32_t kLeafFeatures = 0x1;
constexpr uint32_t kLeafCaches = 0x4;
constexpr uint32_t kLeafTopology = 0xb;
constexpr uint32_t kLeafTopologyV2 = 0x1f;
constexpr uint32_t kLeafHypervisor = 0x40000000;
constexpr uint32_t kLeafHypervisorTiming = 0x40000010;
constexpr uint32_t kLeafExtended = 0x80000000;
constexpr uint32_t kLeafAmdFeatures = 0x80000001;
constexpr uint32_t kLeafSizes = 0x80000008;
constexpr uint32_t kLeafAmdCaches = 0x8000001d;
constexpr uint32_t kLeafAmdTopology = 0x8000001e;
constexpr uint32_t kLeafAmdTopologyV2 = 0x80000026;

// Domain types in ECX[15:8] of 0BH and 1FH.
enum class Domain : uint32_t { kInvalid = 0, kThread = 1, kCore = 2, kDie = 5 };

using Table = std::vector<kvm_cpuid_entry2>;

kvm_cpuid_entry2* Find(Table& table, uint32_t leaf, uint32_t subleaf = 0) {
  for (kvm_cpuid_entry2& entry : table) {
    if (entry.function == leaf && entry.index == subleaf) return &entry;
  }
  return nullptr;
}

void Remove(Table& table, uint32_t leaf) {
  std::erase_if(table, [leaf](const kvm_cpuid_entry2& entry) { return entry.function == leaf; });
}

// Takes out entries that are all zero: KVM gives zeros for what is missing, and KVM_SET_CPUID2,
// once per vCPU, takes time for each entry.
void RemoveZeros(Table& table) {
  std::erase_if(table, [](const kvm_cpuid_entry2& entry) {
    return (entry.eax | entry.ebx | entry.ecx | entry.edx) == 0;
  });
}

kvm_cpuid_entry2& FindOrAdd(Table& table, uint32_t leaf) {
  if (kvm_cpuid_entry2* entry = Find(table, leaf)) return *entry;
  kvm_cpuid_entry2 entry = {};
  entry.function = leaf;
  return table.emplace_back(entry);
}

// Puts `value` into bits high:low of `reg`; a value that does not fit saturates.
void SetBits(uint32_t& reg, uint32_t high, uint32_t low, uint64_t value) {
  const uint64_t max = (uint64_t{1} << (high - low + 1)) - 1;
  const uint64_t mask = max << low;
  reg = static_cast<uint32_t>((reg & ~mask) | std::min(value, max) << low);
}

void SetBit(uint32_t& reg, uint32_t bit, bool on) { SetBits(reg, bit, bit, on ? 1 : 0); }

// Number of APIC IDs that a field of `bits` bits has.
uint64_t IdsOf(uint32_t bits) { return uint64_t{1} << bits; }

bool IsAmd(Table& table) {
  const kvm_cpuid_entry2* vendor = Find(table, kLeafVendor);
  constexpr uint32_t kAuth = 0x68747541;  // "AuthenticAMD"
  constexpr uint32_t kHygo = 0x6f677948;  // "HygonGenuine"
  return vendor != nullptr && (vendor->ebx == kAuth || vendor->ebx == kHygo);
}

uint32_t CpusPerPackage(const Topology& topology) {
  return topology.dies_per_socket * topology.cores_per_die * topology.threads_per_core;
}

// Leaf 1. EBX[23:16]: IDs reserved for the logical processors of a package; meaningful with HTT.
void PatchFeatures(const Topology& topology, const CpuidOptions& options, Table& table) {
  kvm_cpuid_entry2& entry = FindOrAdd(table, kLeafFeatures);
  SetBits(entry.ebx, 31, 24, 0);
  SetBits(entry.ebx, 23, 16, IdsOf(topology.package_shift));
  SetBit(entry.ecx, 21, options.x2apic);
  SetBit(entry.ecx, 24, options.tsc_deadline);
  SetBit(entry.ecx, 31, true);                          // hypervisor present
  SetBit(entry.edx, 28, CpusPerPackage(topology) > 1);  // HTT
}

// Leaves 4 (Intel) and 8000001DH (AMD): EAX[25:14] = IDs that share the cache - 1; on Intel
// EAX[31:26] = core IDs in the package - 1. L1 and L2 belong to a core, L3 and above to a die.
void PatchCaches(const Topology& topology, Table& table) {
  for (kvm_cpuid_entry2& entry : table) {
    const bool intel = entry.function == kLeafCaches;
    if (!intel && entry.function != kLeafAmdCaches) continue;
    const uint32_t type = entry.eax & 0x1f;
    const uint32_t level = entry.eax >> 5 & 7;
    if (type == 0) continue;  // no more caches
    SetBits(entry.eax, 25, 14, IdsOf(level <= 2 ? topology.core_shift : topology.die_shift) - 1);
    if (intel) SetBits(entry.eax, 31, 26, IdsOf(topology.package_shift - topology.core_shift) - 1);
  }
}

// One sub-leaf of 0BH or 1FH. EAX: how far to shift the ID right for the next domain's; EBX:
// logical processors in this domain. EDX, the ID, is set per vCPU.
void AddDomain(Table& table, uint32_t leaf, uint32_t subleaf, Domain domain, uint32_t shift,
               uint32_t cpus) {
  kvm_cpuid_entry2 entry = {};
  entry.function = leaf;
  entry.index = subleaf;
  entry.flags = KVM_CPUID_FLAG_SIGNIFCANT_INDEX;
  entry.eax = std::min(shift, 31u);  // 5 bits
  entry.ebx = std::min(cpus, 0xffffu);
  entry.ecx = subleaf | static_cast<uint32_t>(domain) << 8;
  table.push_back(entry);
}

// Leaf 0BH knows threads and cores only: its core domain is the package. Leaf 1FH has the dies too.
void AddTopologyLeaves(const Topology& topology, Table& table) {
  Remove(table, kLeafTopology);
  Remove(table, kLeafTopologyV2);
  const uint32_t per_core = topology.threads_per_core;
  const uint32_t per_die = topology.cores_per_die * per_core;
  const uint32_t per_package = CpusPerPackage(topology);
  AddDomain(table, kLeafTopology, 0, Domain::kThread, topology.core_shift, per_core);
  AddDomain(table, kLeafTopology, 1, Domain::kCore, topology.package_shift, per_package);
  AddDomain(table, kLeafTopology, 2, Domain::kInvalid, 0, 0);
  uint32_t subleaf = 0;
  const auto add = [&](Domain domain, uint32_t shift, uint32_t cpus) {
    AddDomain(table, kLeafTopologyV2, subleaf++, domain, shift, cpus);
  };
  add(Domain::kThread, topology.core_shift, per_core);
  add(Domain::kCore, topology.die_shift, per_die);
  if (topology.dies_per_socket > 1) add(Domain::kDie, topology.package_shift, per_package);
  add(Domain::kInvalid, 0, 0);
  kvm_cpuid_entry2& vendor = FindOrAdd(table, kLeafVendor);
  vendor.eax = std::max(vendor.eax, kLeafTopologyV2);  // highest basic leaf
}

// AMD's own leaves: APM vol 3, E.4.1 (80000001H), E.4.7 (80000008H), E.4.17 (8000001EH).
void PatchAmd(const Topology& topology, Table& table) {
  // 80000026H is one more description of the topology, which need not be there: without it software
  // goes by 0BH.
  Remove(table, kLeafAmdTopologyV2);
  kvm_cpuid_entry2& extended = FindOrAdd(table, kLeafExtended);
  extended.eax = std::clamp(extended.eax, kLeafAmdTopology, kLeafAmdTopologyV2 - 1);

  kvm_cpuid_entry2& features = FindOrAdd(table, kLeafAmdFeatures);
  SetBit(features.ecx, 1, CpusPerPackage(topology) > 1);  // CmpLegacy
  SetBit(features.ecx, 22, true);  // TopologyExtensions: 8000001DH and 8000001EH are there

  kvm_cpuid_entry2& sizes = FindOrAdd(table, kLeafSizes);
  SetBits(sizes.ecx, 7, 0, CpusPerPackage(topology) - 1);  // NC
  SetBits(sizes.ecx, 15, 12, topology.package_shift);      // ApicIdSize

  kvm_cpuid_entry2& ids = FindOrAdd(table, kLeafAmdTopology);
  ids.eax = ids.ebx = ids.ecx = ids.edx = 0;
  SetBits(ids.ebx, 15, 8, topology.threads_per_core - 1);
  SetBits(ids.ecx, 10, 8, std::max(topology.nodes / topology.sockets, 1u) - 1);  // per processor
}

void AddTiming(uint32_t tsc_khz, Table& table) {
  if (tsc_khz == 0) return;
  kvm_cpuid_entry2& base = FindOrAdd(table, kLeafHypervisor);
  base.eax = std::max(base.eax, kLeafHypervisorTiming);
  FindOrAdd(table, kLeafHypervisorTiming).eax = tsc_khz;
}

}  // namespace

ApicId FirmwareLie(ApicId apic_id) {
  constexpr uint32_t kOffset = 0x10;
  return ApicId(apic_id.value >= kOffset ? apic_id.value - kOffset : apic_id.value + kOffset);
}

CpuidTemplate::CpuidTemplate(std::span<const kvm_cpuid_entry2> supported, const Topology& topology,
                             const CpuidOptions& options)
    : entries_(supported.begin(), supported.end()), places_(topology.places) {
  cores_per_die_ = topology.cores_per_die;
  RemoveZeros(entries_);
  PatchFeatures(topology, options, entries_);
  PatchCaches(topology, entries_);
  AddTopologyLeaves(topology, entries_);
  if (IsAmd(entries_)) PatchAmd(topology, entries_);
  AddTiming(options.tsc_khz, entries_);
}

std::vector<kvm_cpuid_entry2> CpuidTemplate::ForCpu(CpuNumber cpu,
                                                    std::optional<ApicId> shown) const {
  const CpuPlace& place = places_[cpu.value];
  const uint32_t id = shown.value_or(place.apic_id).value;
  Table table = entries_;
  for (kvm_cpuid_entry2& entry : table) {
    switch (entry.function) {
      case kLeafFeatures:
        SetBits(entry.ebx, 31, 24, id & 0xff);  // initial APIC ID
        break;
      case kLeafTopology:
      case kLeafTopologyV2:
        entry.edx = id;  // in every sub-leaf
        break;
      case kLeafAmdTopology:
        entry.eax = id;  // extended APIC ID
        SetBits(entry.ebx, 7, 0, (place.die * cores_per_die_ + place.core) & 0xff);
        SetBits(entry.ecx, 7, 0, place.node & 0xff);
        break;
      default:
        break;
    }
  }
  return table;
}

const kvm_cpuid_entry2* FindCpuid(std::span<const kvm_cpuid_entry2> table, uint32_t leaf,
                                  uint32_t subleaf) {
  for (const kvm_cpuid_entry2& entry : table) {
    if (entry.function == leaf && entry.index == subleaf) return &entry;
  }
  return nullptr;
}

}  // namespace sipi
