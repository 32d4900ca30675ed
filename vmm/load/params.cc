#include "vmm/load/params.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "guest/abi/layout.h"
#include "guest/abi/percpu.h"
#include "guest/abi/scenario_results.h"
#include "guest/abi/trace.h"

namespace sipi {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kLargePageBytes = 2ull << 20;

// A per-CPU block is two pages, where only bring-up is traced. The first holds what the guest keeps
// at its front (its header and a few words of its own) and the ring; the second, and what the ring
// leaves of the first, the stack. An AP emits some 40 records in a bring-up.
constexpr uint32_t kPerCpuFrontBytes = 256;
constexpr uint32_t kPerCpuRingRecords = 192;
static_assert(kPerCpuFrontBytes + kPerCpuRingRecords * sizeof(abi::TraceRecord) <= kPageBytes);
static_assert(sizeof(abi::PerCpuHeader) <= kPerCpuFrontBytes);

// The boot CPU emits some 14 records for each AP and pass, and there are up to four passes.
constexpr uint32_t kBootRingRecordsPerCpu = 64;
constexpr uint32_t kBootRingRecordsFixed = 1024;

constexpr uint64_t RoundUp(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// A blob that grows by aligned arrays.
class Blob {
 public:
  // Room for `count` T, zeroed; returns its offset.
  template <class T>
  uint32_t Reserve(size_t count) {
    const size_t offset = RoundUp(bytes_.size(), 8);
    bytes_.resize(RoundUp(offset + count * sizeof(T), 8));
    return static_cast<uint32_t>(offset);
  }

  template <class T>
  void Put(uint32_t offset, size_t index, const T& value) {
    memcpy(bytes_.data() + offset + index * sizeof(T), &value, sizeof(T));
  }

  uint32_t size() const { return static_cast<uint32_t>(bytes_.size()); }
  std::vector<std::byte> Take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// At most half full, so that a look-up rarely probes twice.
uint32_t HashBits(uint32_t cpus) {
  return static_cast<uint32_t>(std::bit_width(std::max(2 * cpus, 2u) - 1));
}

std::vector<abi::ApicHashEntry> BuildHash(const Topology& topology, uint32_t bits) {
  std::vector<abi::ApicHashEntry> table(size_t{1} << bits, {0, abi::kNoCpu});
  for (uint32_t cpu = 0; cpu < topology.cpu_count(); ++cpu) {
    const uint32_t id = topology.places[cpu].apic_id.value;
    size_t slot = (id * abi::kApicHashMultiplier) >> (32 - bits);
    while (table[slot].cpu != abi::kNoCpu) slot = (slot + 1) % table.size();
    table[slot] = {id, cpu};
  }
  return table;
}

void PutCpuTable(const RunConfig& config, abi::BootParams& params, Blob& blob) {
  params.cpu_count = config.topology.cpu_count();
  params.cpu_table_offset = blob.Reserve<abi::CpuEntry>(params.cpu_count);
  for (uint32_t cpu = 0; cpu < params.cpu_count; ++cpu) {
    const CpuPlace& place = config.topology.places[cpu];
    const bool lies = std::find(config.firmware_lies.begin(), config.firmware_lies.end(), cpu) !=
                      config.firmware_lies.end();
    blob.Put(params.cpu_table_offset, cpu,
             abi::CpuEntry{.apic_id = place.apic_id.value,
                           .package = static_cast<uint16_t>(place.package),
                           .core = static_cast<uint16_t>(place.core_index),
                           .node = static_cast<uint16_t>(place.node),
                           .thread = static_cast<uint8_t>(place.thread),
                           .cpuid_lies = lies});
  }
}

void PutOrder(const RunConfig& config, abi::BootParams& params, Blob& blob) {
  params.order_count = static_cast<uint32_t>(config.order.size());
  params.order_offset = blob.Reserve<uint32_t>(params.order_count);
  for (size_t i = 0; i < config.order.size(); ++i) {
    blob.Put(params.order_offset, i, config.order[i]);
  }
}

void PutHash(const Topology& topology, abi::BootParams& params, Blob& blob) {
  params.apic_hash_bits = HashBits(topology.cpu_count());
  const auto table = BuildHash(topology, params.apic_hash_bits);
  params.apic_hash_offset = blob.Reserve<abi::ApicHashEntry>(table.size());
  for (size_t i = 0; i < table.size(); ++i) blob.Put(params.apic_hash_offset, i, table[i]);
}

void SetArena(const ArenaLayout& arena, abi::BootParams& params) {
  params.percpu_stride_bytes = arena.percpu_stride_bytes;
  params.percpu_ring_records = arena.percpu_ring_records;
  params.boot_ring_records = arena.boot_ring_records;
  params.result_gpa = arena.result.value;
  params.slots_gpa = arena.slots.value;
  params.percpu_gpa = arena.percpu.value;
  params.boot_ring_gpa = arena.boot_ring.value;
  params.heap_gpa = arena.heap.value;
  params.heap_bytes = arena.heap_bytes;
  params.torture_gpa = arena.torture.value;
}

void SetKnobs(const RunConfig& config, uint32_t tsc_khz, abi::BootParams& params) {
  params.tsc_khz = config.clock_known ? tsc_khz : 0;
  params.pm_timer_port = config.clock_known ? 0 : abi::kPmTimerPort;
  params.apic_mode = static_cast<uint8_t>(config.apic_mode);
  params.driver = static_cast<uint8_t>(config.driver);
  params.charge = config.profile.imposes_anything() ? 1 : 0;
  // KVM's own irqchips lose an INIT to a vCPU that is not there yet; ours keeps it.
  params.doorbell = config.irqchip != IrqchipKind::kUser ? 1 : 0;
  params.retry = config.retry ? 1 : 0;
  params.settle = config.settle ? 1 : 0;
  params.scenario = config.scenario;
  params.scenario_value = config.scenario_value;
  params.fault = config.fault;
  params.knobs = config.knobs;
  params.strategy = config.strategy;
  params.kernel = config.kernel;
  params.scenario_knobs = config.scenario_knobs;
}

// Rings of at most 2 GiB: sizes and distances of blocks are words of 32 bits (abi::BootParams).
// What does not fit counts as lost.
constexpr uint64_t kMostRingRecords = (uint64_t{2} << 30) / sizeof(abi::TraceRecord);

uint64_t PerCpuRingRecords(const ArenaNeeds& needs) {
  return std::min(kPerCpuRingRecords + needs.percpu_records, kMostRingRecords);
}

uint64_t BootRingRecords(const ArenaNeeds& needs) {
  const uint64_t bring_up = uint64_t{kBootRingRecordsPerCpu} * needs.cpus + kBootRingRecordsFixed;
  return std::min(bring_up + needs.boot_records, kMostRingRecords);
}

ArenaLayout Plan(const ArenaNeeds& needs, uint64_t stride_bytes) {
  ArenaLayout arena;
  uint64_t next = abi::kArenaGpa;
  const auto take = [&next](uint64_t bytes) {
    const Gpa at(next);
    next += RoundUp(bytes, kPageBytes);
    return at;
  };
  arena.result = take(sizeof(abi::ResultPage));
  arena.slots = take(uint64_t{needs.cpus} * sizeof(abi::CpuSlot));
  arena.boot_ring_records = static_cast<uint32_t>(BootRingRecords(needs));
  arena.boot_ring = take(uint64_t{arena.boot_ring_records} * sizeof(abi::TraceRecord));
  arena.percpu_stride_bytes = static_cast<uint32_t>(stride_bytes);
  arena.percpu_ring_records = static_cast<uint32_t>(PerCpuRingRecords(needs));
  arena.percpu = take(uint64_t{needs.cpus} * stride_bytes);
  arena.end = arena.percpu + uint64_t{needs.cpus} * stride_bytes;
  if (needs.heap_bytes != 0) {
    arena.torture = take(sizeof(abi::TorturePage));
    arena.heap_bytes = RoundUp(needs.heap_bytes, kPageBytes);
    arena.heap = take(arena.heap_bytes);
    arena.end = Gpa(next);
  }
  arena.ram_bytes = RoundUp(next, kLargePageBytes);
  return arena;
}

}  // namespace

ArenaLayout PlanArena(const ArenaNeeds& needs) {
  const uint64_t front_and_ring =
      kPerCpuFrontBytes + PerCpuRingRecords(needs) * sizeof(abi::TraceRecord);
  // The stack has a page of its own, and what the ring leaves of the page before.
  return Plan(needs, RoundUp(front_and_ring, kPageBytes) + kPageBytes);
}

ArenaLayout PlanSimulatedArena(const ArenaNeeds& needs) {
  // The guest's front of a block is 128 bytes (guest/kernel/percpu.h asserts it).
  const uint64_t lines = (128 + PerCpuRingRecords(needs) * sizeof(abi::TraceRecord)) / 64 + 1;
  return Plan(needs, (lines | 1) * 64);
}

std::vector<std::byte> BuildBootParams(const RunConfig& config, const ArenaLayout& arena,
                                       uint32_t tsc_khz) {
  Blob blob;
  abi::BootParams params;
  const uint32_t at = blob.Reserve<abi::BootParams>(1);
  PutCpuTable(config, params, blob);
  PutOrder(config, params, blob);
  PutHash(config.topology, params, blob);
  SetArena(arena, params);
  SetKnobs(config, tsc_khz, params);
  params.size_bytes = blob.size();
  blob.Put(at, 0, params);
  return blob.Take();
}

}  // namespace sipi
