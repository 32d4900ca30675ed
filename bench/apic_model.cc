// What the APIC model alone costs, without KVM and without threads: register accesses, the life of
// an interrupt, routing per target. Google Benchmark; its flags apply, e.g.
// --benchmark_filter=Broadcast --benchmark_repetitions=9.
//
// The aims (docs/performance.md): a register write under 20 ns, broadcast routing under 5 ns per
// target.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "apic/model/local_apic.h"
#include "apic/model/router.h"

namespace sipi::apic {
namespace {

constexpr Time kNow{.ns = 1000, .tsc = 3000};

LocalApic EnabledApic(ApicMode mode, ApicId id = ApicId(0)) {
  LocalApic apic(id, id.value == 0);
  apic.Reset(id.value == 0, mode);
  if (mode == ApicMode::kX2Apic) {
    (void)apic.WriteMsr(X2ApicMsr(Reg::kSvr), 0x1ff, kNow);
  } else {
    (void)apic.WriteMmio(static_cast<uint32_t>(Reg::kSvr), 0x1ff, kNow);
  }
  return apic;
}

// All CPUs enabled in one mode, IDs dense; in xAPIC mode the flat model, logical IDs going round.
RoutingTable Machine(uint32_t cpus, ApicMode mode) {
  std::vector<ApicId> ids;
  for (uint32_t cpu = 0; cpu < cpus; ++cpu) ids.push_back(ApicId(cpu));
  RoutingTable table(ids);
  for (uint32_t cpu = 0; cpu < cpus; ++cpu) {
    RoutingState state = EnabledApic(mode, ids[cpu]).Routing();
    if (mode == ApicMode::kXApic) state.ldr = 1u << (24 + cpu % 8);
    table.Publish(CpuNumber(cpu), state);
  }
  return table;
}

// Seconds per target, which Google Benchmark prints with a unit: "1.7n".
void CountTargets(benchmark::State& state, uint64_t targets_per_iteration) {
  using benchmark::Counter;
  state.counters["per_target"] =
      Counter(static_cast<double>(targets_per_iteration),
              Counter::Flags(Counter::kIsIterationInvariantRate | Counter::kInvert));
}

// --- Registers.

void XApicWrite(benchmark::State& state, Reg reg) {
  LocalApic apic = EnabledApic(ApicMode::kXApic);
  const uint32_t offset = static_cast<uint32_t>(reg);
  uint32_t value = 0x10051;
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(value);
    WriteEffect effect = apic.WriteMmio(offset, value, kNow);
    benchmark::DoNotOptimize(effect);
  }
}

void X2ApicWrite(benchmark::State& state, Reg reg) {
  LocalApic apic = EnabledApic(ApicMode::kX2Apic);
  const uint32_t msr = X2ApicMsr(reg);
  uint64_t value = 0x51;
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(value);
    WriteEffect effect = apic.WriteMsr(msr, value, kNow);
    benchmark::DoNotOptimize(effect);
  }
}

void XApicRead(benchmark::State& state, Reg reg) {
  LocalApic apic = EnabledApic(ApicMode::kXApic);
  const uint32_t offset = static_cast<uint32_t>(reg);
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(apic.ReadMmio(offset, kNow));
}

BENCHMARK_CAPTURE(XApicWrite, TPR, Reg::kTpr);
BENCHMARK_CAPTURE(XApicWrite, LDR, Reg::kLdr);
BENCHMARK_CAPTURE(XApicWrite, ICR, Reg::kIcrLow);
BENCHMARK_CAPTURE(XApicWrite, LVT_thermal, Reg::kLvtThermal);
BENCHMARK_CAPTURE(XApicWrite, LVT_timer, Reg::kLvtTimer);
BENCHMARK_CAPTURE(XApicWrite, initial_count, Reg::kTimerInitial);
BENCHMARK_CAPTURE(X2ApicWrite, TPR, Reg::kTpr);
BENCHMARK_CAPTURE(X2ApicWrite, ICR, Reg::kIcrLow);
BENCHMARK_CAPTURE(X2ApicWrite, LVT_thermal, Reg::kLvtThermal);
BENCHMARK_CAPTURE(X2ApicWrite, initial_count, Reg::kTimerInitial);
BENCHMARK_CAPTURE(X2ApicWrite, self_IPI, Reg::kSelfIpi);
BENCHMARK_CAPTURE(XApicRead, PPR, Reg::kPpr);
BENCHMARK_CAPTURE(XApicRead, IRR, Reg::kIrr0);
BENCHMARK_CAPTURE(XApicRead, current_count, Reg::kTimerCurrent);

// --- The life of an interrupt.

void Eoi(benchmark::State& state) {
  LocalApic full = EnabledApic(ApicMode::kX2Apic);
  for (uint32_t vector = 16; vector < 256; ++vector) {
    full.Accept(Vector(static_cast<uint8_t>(vector)));
    full.Acknowledge(Vector(static_cast<uint8_t>(vector)));
  }
  LocalApic apic = full;
  uint32_t left = 240;
  for ([[maybe_unused]] auto _ : state) {
    WriteEffect effect = apic.WriteMsr(X2ApicMsr(Reg::kEoi), 0, kNow);
    benchmark::DoNotOptimize(effect);
    if (--left == 0) {
      apic = full;
      left = 240;
    }
  }
}
BENCHMARK(Eoi);

void AcceptAcknowledgeEoi(benchmark::State& state) {
  LocalApic apic = EnabledApic(ApicMode::kX2Apic);
  uint8_t vector = 0x31;
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(vector);
    apic.Accept(Vector(vector));
    apic.Acknowledge(*apic.HighestDeliverable());
    WriteEffect effect = apic.WriteMsr(X2ApicMsr(Reg::kEoi), 0, kNow);
    benchmark::DoNotOptimize(effect);
  }
}
BENCHMARK(AcceptAcknowledgeEoi);

// --- Routing.

// The whole way of an interrupt command: ICR written by MSR, its effect, then one look at each
// target's routing word and one call for each. `command` is the ICR's value.
void SendFrom(benchmark::State& state, const RoutingTable& table, uint64_t command) {
  LocalApic apic = EnabledApic(ApicMode::kX2Apic);
  uint64_t targets = 0;
  uint64_t sum = 0;
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(command);
    const WriteEffect effect = apic.WriteMsr(X2ApicMsr(Reg::kIcrLow), command, kNow);
    table.ForEachTarget(effect.icr, CpuNumber(0), [&](CpuNumber cpu) {
      sum += cpu.value;
      ++targets;
    });
    benchmark::DoNotOptimize(sum);
  }
  CountTargets(state, targets / static_cast<uint64_t>(state.iterations()));
}

// To all but self; the argument is the number of targets.
void Broadcast(benchmark::State& state) {
  const RoutingTable table = Machine(static_cast<uint32_t>(state.range(0)) + 1, ApicMode::kX2Apic);
  SendFrom(state, table, 0x000c4031);
}
BENCHMARK(Broadcast)->Arg(64)->Arg(255)->Arg(1023);

// The same with lowest priority, which looks at every target and hits one.
void BroadcastLowestPriority(benchmark::State& state) {
  const RoutingTable table = Machine(static_cast<uint32_t>(state.range(0)) + 1, ApicMode::kX2Apic);
  SendFrom(state, table, 0x000c4131);
  CountTargets(state, static_cast<uint64_t>(state.range(0)));  // that is, per candidate
}
BENCHMARK(BroadcastLowestPriority)->Arg(1023);

void Physical(benchmark::State& state) {
  const RoutingTable table = Machine(1024, ApicMode::kX2Apic);
  SendFrom(state, table, uint64_t{777} << 32 | 0x4031);
}
BENCHMARK(Physical);

// All sixteen CPUs of one cluster among 1,024.
void X2ApicLogical(benchmark::State& state) {
  const RoutingTable table = Machine(1024, ApicMode::kX2Apic);
  SendFrom(state, table, uint64_t{0x0030ffff} << 32 | 0x4831);
}
BENCHMARK(X2ApicLogical);

// Flat model: two logical IDs among as many CPUs as 8 bits of ID hold.
void XApicFlat(benchmark::State& state) {
  const RoutingTable table = Machine(static_cast<uint32_t>(state.range(0)), ApicMode::kXApic);
  Icr icr = Icr::FromLow(0x4831, 0x81);
  uint64_t targets = 0;
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(icr);
    table.ForEachTarget(icr, CpuNumber(0), [&](CpuNumber) { ++targets; });
    benchmark::DoNotOptimize(targets);
  }
  CountTargets(state, targets / static_cast<uint64_t>(state.iterations()));
}
BENCHMARK(XApicFlat)->Arg(8)->Arg(254);

// A CPU publishes a new routing word.
void Publish(benchmark::State& state) {
  RoutingTable table = Machine(64, ApicMode::kX2Apic);
  RoutingState word = table.State(CpuNumber(7));
  for ([[maybe_unused]] auto _ : state) {
    word.priority ^= 0x40;
    table.Publish(CpuNumber(7), word);
  }
}
BENCHMARK(Publish);

}  // namespace
}  // namespace sipi::apic

BENCHMARK_MAIN();
