#include "vmm/load/params.h"

#include <gtest/gtest.h>

#include <cstring>

#include "guest/abi/layout.h"
#include "guest/abi/percpu.h"
#include "guest/abi/trace.h"

namespace sipi {
namespace {

constexpr uint32_t kTscKhz = 2596144;

RunConfig Config(const Topology& topology) {
  RunConfig config;
  config.topology = topology;
  config.cpus = topology.cpu_count();
  for (uint32_t cpu = 1; cpu < config.cpus; ++cpu) config.order.push_back(cpu);
  return config;
}

// A blob with its contents read as the guest reads them.
struct Blob {
  explicit Blob(const RunConfig& config)
      : bytes(BuildBootParams(config, PlanArena(NeedsOf(config)), kTscKhz)) {
    memcpy(&params, bytes.data(), sizeof(params));
  }
  template <class T>
  T At(uint64_t offset, uint64_t index) const {
    T value;
    EXPECT_LE(offset + (index + 1) * sizeof(T), bytes.size());
    memcpy(&value, bytes.data() + offset + index * sizeof(T), sizeof(T));
    return value;
  }
  abi::CpuEntry Cpu(uint32_t cpu) const { return At<abi::CpuEntry>(params.cpu_table_offset, cpu); }
  // The guest's look-up: linear probing until the ID or an empty entry.
  uint32_t Find(uint32_t apic_id) const {
    const uint32_t bits = params.apic_hash_bits;
    uint32_t slot = (apic_id * abi::kApicHashMultiplier) >> (32 - bits);
    for (uint32_t probes = 0; probes < 1u << bits; ++probes) {
      const auto entry = At<abi::ApicHashEntry>(params.apic_hash_offset, slot);
      if (entry.cpu == abi::kNoCpu || entry.apic_id == apic_id) return entry.cpu;
      slot = (slot + 1) % (1u << bits);
    }
    return abi::kNoCpu;
  }
  std::vector<std::byte> bytes;
  abi::BootParams params;
};

TEST(PlanArena, AreasFollowEachOtherOnPagesOfTheirOwn) {
  for (const uint32_t cpus : {1u, 2u, 64u, 1024u}) {
    const ArenaLayout arena = PlanArena({.cpus = cpus});
    EXPECT_EQ(arena.result.value, abi::kArenaGpa);
    EXPECT_GE(arena.slots.value, arena.result.value + sizeof(abi::ResultPage));
    EXPECT_GE(arena.boot_ring.value, arena.slots.value + uint64_t{cpus} * sizeof(abi::CpuSlot));
    EXPECT_GE(arena.percpu.value,
              arena.boot_ring.value + uint64_t{arena.boot_ring_records} * sizeof(abi::TraceRecord));
    EXPECT_EQ(arena.end.value, arena.percpu.value + uint64_t{cpus} * arena.percpu_stride_bytes);
    for (const Gpa at : {arena.result, arena.slots, arena.boot_ring, arena.percpu}) {
      EXPECT_EQ(at.value % 4096, 0u);
    }
    EXPECT_GE(arena.ram_bytes, arena.end.value);
    EXPECT_EQ(arena.ram_bytes % (2u << 20), 0u);
  }
}

TEST(PlanArena, RingsScaleWithTheCpus) {
  EXPECT_GE(PlanArena({.cpus = 64}).boot_ring_records, 64u * 64 + 1024);
  const ArenaLayout arena = PlanArena({.cpus = 2});
  EXPECT_GE(arena.percpu_ring_records, 96u);
  // Header, ring, and at least a page of stack.
  EXPECT_LE(sizeof(abi::PerCpuHeader) + arena.percpu_ring_records * sizeof(abi::TraceRecord) + 4096,
            arena.percpu_stride_bytes);
}

TEST(PlanArena, MemoryOf1024CpusIsBounded) {
  EXPECT_EQ(PlanArena({.cpus = 1024}).ram_bytes,
            18u << 20);  // 8 MiB below the arena, 8 of blocks, 1 of ring
}

TEST(PlanArena, WithoutServicesThereIsNoHeap) {
  const ArenaLayout arena = PlanArena(NeedsOf(Config(FlatTopology(64))));
  EXPECT_EQ(arena.heap_bytes, 0u);
  EXPECT_EQ(arena.heap.value, 0u);
  EXPECT_EQ(arena.torture.value, 0u);
  EXPECT_EQ(arena.ram_bytes, PlanArena({.cpus = 64}).ram_bytes);
}

TEST(PlanArena, HeapAndTortureCountersFollowTheBlocks) {
  const ArenaLayout arena = PlanArena({.cpus = 5, .heap_bytes = 1 << 20});
  EXPECT_GE(arena.torture.value, arena.percpu.value + 5 * uint64_t{arena.percpu_stride_bytes});
  EXPECT_GE(arena.heap.value, arena.torture.value + sizeof(abi::TortureCounters));
  EXPECT_EQ(arena.heap.value % 4096, 0u);
  EXPECT_EQ(arena.end.value, arena.heap.value + arena.heap_bytes);
  EXPECT_GE(arena.ram_bytes, arena.end.value);
}

TEST(PlanArena, LargerRingsLeaveTheStackItsPage) {
  const ArenaLayout arena = PlanArena({.cpus = 3, .percpu_records = 5000});
  EXPECT_GE(arena.percpu_ring_records, 5000u);
  EXPECT_LE(256 + arena.percpu_ring_records * sizeof(abi::TraceRecord) + 4096,
            arena.percpu_stride_bytes);
  EXPECT_EQ(arena.percpu_stride_bytes % 4096, 0u);
}

TEST(PlanSimulatedArena, BlocksAreAnOddNumberOfLinesApart) {
  for (const uint64_t records : {0u, 1u, 100u, 4000u, 4001u}) {
    const ArenaLayout arena = PlanSimulatedArena({.cpus = 2, .percpu_records = records});
    EXPECT_EQ(arena.percpu_stride_bytes / 64 % 2, 1u) << records;
    EXPECT_GE(arena.percpu_stride_bytes,
              128 + arena.percpu_ring_records * sizeof(abi::TraceRecord));
  }
}

// The words that tell the guest of them have 32 bits: what is planned is what they say.
TEST(PlanArena, RingsLargerThanTheirWordsAreCut) {
  for (const uint64_t records : {uint64_t{1} << 28, uint64_t{1} << 32, uint64_t{1} << 40}) {
    for (const auto plan : {PlanArena, PlanSimulatedArena}) {
      const ArenaLayout arena =
          plan({.cpus = 2, .boot_records = records, .percpu_records = records});
      EXPECT_GE(arena.boot_ring_records, 1u << 26);
      EXPECT_GE(arena.percpu_ring_records, 1u << 26);
      EXPECT_GE(arena.percpu_stride_bytes,
                128 + uint64_t{arena.percpu_ring_records} * sizeof(abi::TraceRecord));
      EXPECT_GE(arena.percpu.value, arena.boot_ring.value + uint64_t{arena.boot_ring_records} *
                                                                sizeof(abi::TraceRecord));
    }
  }
}

RunConfig ServiceConfig(uint32_t cpus, abi::Scenario scenario) {
  RunConfig config = Config(FlatTopology(cpus));
  config.kernel.services = 1;
  config.scenario = scenario;
  return config;
}

TEST(NeedsOf, RingsGrowWithWhatAScenarioDoes) {
  RunConfig smt = ServiceConfig(32, abi::Scenario::kSmt);
  smt.scenario_knobs.approaches = 1;
  const ArenaNeeds one = NeedsOf(smt);
  smt.scenario_knobs.approaches = 0x7f;
  const ArenaNeeds seven = NeedsOf(smt);
  EXPECT_GE(seven.boot_records - one.boot_records, 6u * 2 * 32 * 100);
  EXPECT_GT(seven.percpu_records, one.percpu_records);
  RunConfig scale = ServiceConfig(16, abi::Scenario::kRcuScale);
  scale.scenario_knobs.measurements = 100;
  // Two records a measurement at the very least, of a writer that is ten times as fast as others.
  EXPECT_GE(NeedsOf(scale).percpu_records, 2u * 100 * 10);
}

TEST(StartupsPerCpu, CountHowOftenACpuComesBack) {
  EXPECT_EQ(StartupsPerCpu(Config(FlatTopology(4))), 1u);
  RunConfig smt = ServiceConfig(4, abi::Scenario::kSmt);
  smt.scenario_knobs.approaches = 0x7f;
  smt.scenario_knobs.rounds = 2;
  EXPECT_EQ(StartupsPerCpu(smt), 15u);
  RunConfig one = ServiceConfig(4, abi::Scenario::kHotplug);
  one.scenario_knobs.hotplug_cpu = 2;
  one.scenario_knobs.rounds = 9;
  EXPECT_EQ(StartupsPerCpu(one), 10u);
}

TEST(NeedsOf, EvenTheLargestRunFitsBelowTheHole) {
  for (const uint32_t cpus : {1u, 64u, 1024u, 4096u}) {
    for (const abi::Scenario scenario :
         {abi::Scenario::kHotplug, abi::Scenario::kSmt, abi::Scenario::kRcuScale,
          abi::Scenario::kRefScale, abi::Scenario::kCallRcu, abi::Scenario::kTorture}) {
      RunConfig config = ServiceConfig(cpus, scenario);
      config.scenario_knobs.rounds = 1'000'000;
      config.scenario_knobs.approaches = 0x7f;
      config.scenario_knobs.measurements = 1'000'000;
      config.scenario_knobs.duration_ms = 86'400'000;
      EXPECT_LE(PlanArena(NeedsOf(config)).end.value, uint64_t{3} << 30) << cpus;
      config.machine = MachineKind::kSim;
      const ArenaLayout arena = PlanSimulatedArena(NeedsOf(config));
      EXPECT_GE(arena.percpu_stride_bytes,
                128 + uint64_t{arena.percpu_ring_records} * sizeof(abi::TraceRecord));
      EXPECT_LE(arena.end.value, uint64_t{3} << 30) << cpus;
    }
  }
}

TEST(BootParams, HeaderDescribesTheBlob) {
  const Blob blob(Config(FlatTopology(4)));
  EXPECT_EQ(blob.params.magic, abi::kBootParamsMagic);
  EXPECT_EQ(blob.params.version, abi::kAbiVersion);
  EXPECT_EQ(blob.params.size_bytes, blob.bytes.size());
  EXPECT_EQ(blob.params.cpu_count, 4u);
  EXPECT_EQ(blob.params.order_count, 3u);
  EXPECT_EQ(blob.params.cpu_table_offset, sizeof(abi::BootParams));
  EXPECT_EQ(blob.params.order_offset % 8, 0u);
  EXPECT_EQ(blob.params.apic_hash_offset % 8, 0u);
  EXPECT_EQ(blob.bytes.size(), blob.params.apic_hash_offset +
                                   (sizeof(abi::ApicHashEntry) << blob.params.apic_hash_bits));
  EXPECT_EQ(blob.At<uint32_t>(blob.params.order_offset, 2), 3u);
}

TEST(BootParams, BlobOf4096CpusFitsBelowTheArena) {
  EXPECT_LE(Blob(Config(FlatTopology(4096))).bytes.size(), abi::kArenaGpa - abi::kParamsGpa);
}

TEST(BootParams, CpuTableHasThePlaces) {
  RunConfig config = Config(*ParseTopology("sockets=2,cores=3,threads=2,nodes=2", 12));
  config.firmware_lies = {7};
  const Blob blob(config);
  const abi::CpuEntry cpu = blob.Cpu(7);
  EXPECT_EQ(cpu.apic_id, 9u);  // package 1, core 0, thread 1
  EXPECT_EQ(cpu.package, 1u);
  EXPECT_EQ(cpu.core, 3u);
  EXPECT_EQ(cpu.node, 1u);
  EXPECT_EQ(cpu.thread, 1u);
  EXPECT_EQ(cpu.cpuid_lies, 1u);
  EXPECT_EQ(blob.Cpu(6).cpuid_lies, 0u);
}

TEST(BootParams, HashFindsSparseIdsAndNothingElse) {
  Topology topology = FlatTopology(5);
  ASSERT_TRUE(SetApicIds("7,0,254,256,4095", topology).ok());
  const Blob blob(Config(topology));
  EXPECT_EQ(blob.Find(7), 0u);
  EXPECT_EQ(blob.Find(0), 1u);
  EXPECT_EQ(blob.Find(254), 2u);
  EXPECT_EQ(blob.Find(256), 3u);
  EXPECT_EQ(blob.Find(4095), 4u);
  EXPECT_EQ(blob.Find(1), abi::kNoCpu);
  EXPECT_EQ(blob.Find(0xffffffff), abi::kNoCpu);
}

TEST(BootParams, HashFindsEveryCpuOf1024WithStrideFour) {
  const Topology topology = *ParseTopology("stride=4", 1024);
  const Blob blob(Config(topology));
  for (uint32_t cpu = 0; cpu < 1024; ++cpu) ASSERT_EQ(blob.Find(cpu * 4), cpu);
  EXPECT_EQ(blob.Find(2), abi::kNoCpu);
}

TEST(BootParams, OneCpuAloneHasAHashToo) {
  const Blob blob(Config(FlatTopology(1)));
  EXPECT_EQ(blob.params.apic_hash_bits, 1u);
  EXPECT_EQ(blob.params.order_count, 0u);
  EXPECT_EQ(blob.Find(0), 0u);
}

TEST(BootParams, ArenaIsHandedOver) {
  const Blob blob(Config(FlatTopology(8)));
  const ArenaLayout arena = PlanArena({.cpus = 8});
  EXPECT_EQ(blob.params.result_gpa, arena.result.value);
  EXPECT_EQ(blob.params.slots_gpa, arena.slots.value);
  EXPECT_EQ(blob.params.boot_ring_gpa, arena.boot_ring.value);
  EXPECT_EQ(blob.params.percpu_gpa, arena.percpu.value);
  EXPECT_EQ(blob.params.percpu_stride_bytes, arena.percpu_stride_bytes);
  EXPECT_EQ(blob.params.percpu_ring_records, arena.percpu_ring_records);
  EXPECT_EQ(blob.params.boot_ring_records, arena.boot_ring_records);
}

TEST(BootParams, GuestCalibratesUnlessItsClockIsKnown) {
  RunConfig config = Config(FlatTopology(2));
  EXPECT_EQ(Blob(config).params.tsc_khz, 0u);
  EXPECT_EQ(Blob(config).params.pm_timer_port, abi::kPmTimerPort);
  config.clock_known = true;
  EXPECT_EQ(Blob(config).params.tsc_khz, kTscKhz);
  EXPECT_EQ(Blob(config).params.pm_timer_port, 0u);
}

TEST(BootParams, DoorbellIsForKvmsIrqchips) {
  RunConfig config = Config(FlatTopology(2));
  config.irqchip = IrqchipKind::kUser;
  EXPECT_EQ(Blob(config).params.doorbell, 0u);
  config.irqchip = IrqchipKind::kSplit;
  EXPECT_EQ(Blob(config).params.doorbell, 1u);
  config.irqchip = IrqchipKind::kKernel;
  EXPECT_EQ(Blob(config).params.doorbell, 1u);
}

TEST(BootParams, ProfileChargesAndTheKnobDecidesTheCalibrationWindow) {
  RunConfig config = Config(FlatTopology(2));
  EXPECT_EQ(Blob(config).params.charge, 0u);
  EXPECT_EQ(Blob(config).params.knobs.calibration_us, abi::Knobs().calibration_us);
  config.profile.microcode.ns = 1000;
  config.profile.calibration_ns =
      4'000'000;  // the command line's default for the knob, which has the last word
  config.knobs.calibration_us = 700;
  EXPECT_EQ(Blob(config).params.charge, 1u);
  EXPECT_EQ(Blob(config).params.knobs.calibration_us, 700u);
}

TEST(BootParams, ServicesGetTheirKnobsAndAreas) {
  RunConfig config = ServiceConfig(8, abi::Scenario::kSmt);
  config.kernel.hz = 100;
  config.kernel.rcu_fanout_leaf = 2;
  config.scenario_knobs.approaches = 5;
  config.scenario_knobs.seed = 77;
  const Blob blob(config);
  const ArenaLayout arena = PlanArena(NeedsOf(config));
  EXPECT_EQ(blob.params.kernel.services, 1u);
  EXPECT_EQ(blob.params.kernel.hz, 100u);
  EXPECT_EQ(blob.params.kernel.rcu_fanout_leaf, 2u);
  EXPECT_EQ(blob.params.scenario_knobs.approaches, 5u);
  EXPECT_EQ(blob.params.scenario_knobs.seed, 77u);
  EXPECT_EQ(blob.params.heap_gpa, arena.heap.value);
  EXPECT_EQ(blob.params.heap_bytes, arena.heap_bytes);
  EXPECT_EQ(blob.params.torture_gpa, arena.torture.value);
  EXPECT_NE(blob.params.heap_gpa, 0u);
}

TEST(BootParams, KnobsStrategyAndFaultAreCopied) {
  RunConfig config = Config(FlatTopology(2));
  config.apic_mode = abi::ApicMode::kXApic;
  config.driver = abi::Driver::kHost;
  config.knobs.handshake_timeout_ms = 77;
  config.strategy = sequence::MakeStrategy(sequence::StrategyId::kTree);
  config.fault = {.kind = abi::Fault::kHang, .cpu = 1, .value = 5};
  config.scenario = abi::Scenario::kIpiAll;
  config.scenario_value = 9;
  const Blob blob(config);
  EXPECT_EQ(blob.params.apic_mode, static_cast<uint8_t>(abi::ApicMode::kXApic));
  EXPECT_EQ(blob.params.driver, static_cast<uint8_t>(abi::Driver::kHost));
  EXPECT_EQ(blob.params.knobs.handshake_timeout_ms, 77u);
  EXPECT_EQ(blob.params.strategy.id, sequence::StrategyId::kTree);
  EXPECT_EQ(blob.params.fault.kind, abi::Fault::kHang);
  EXPECT_EQ(blob.params.fault.value, 5u);
  EXPECT_EQ(blob.params.scenario, abi::Scenario::kIpiAll);
  EXPECT_EQ(blob.params.scenario_value, 9u);
}

}  // namespace
}  // namespace sipi
