#include "vmm/explore/explore_case.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "vmm/explore/drawn_topology.h"
#include "vmm/explore/draws.h"
#include "vmm/explore/rcu_case.h"
#include "vmm/timeline/strategy_name.h"

namespace sipi {
namespace {

using sim::Rate;
using sim::Schedule;

constexpr RateName kRates[] = {
    {"lost-init", &sim::Chaos::lost_init},
    {"lost-sipi", &sim::Chaos::lost_sipi},
    {"late-ap", &sim::Chaos::late_ap},
    {"dead-ap", &sim::Chaos::dead_ap},
    {"delayed-ipi", &sim::Chaos::delayed_ipi},
    {"duplicated-ipi", &sim::Chaos::duplicated_ipi},
    {"stall", &sim::Chaos::stall},
    {"late-timer", &sim::Chaos::late_timer},
    {"frozen-ap", &sim::Chaos::frozen_ap},
    {"frozen", &sim::Chaos::frozen},
    // Drawn for RCU only.
    {"rcu-delay", &sim::Chaos::rcu_delay},
};
constexpr size_t kBootRates = std::size(kRates) - 1;

void DrawKnobs(Draws& draws, RunConfig& config) {
  abi::Knobs& knobs = config.knobs;
  knobs.handshake_timeout_ms = 10'000;
  knobs.calibration_us = 20;
  knobs.kick.sipi_count = draws.OneIn(4) ? 1 : 2;
  knobs.kick.sipi_delay_us = draws.OneIn(2) ? 10 : 1;
  knobs.kick.sipi_idle_delay_us = 0;
  knobs.ap_wait = draws.OneIn(8) ? abi::WaitMode::kSpin : abi::WaitMode::kHalt;
  knobs.trampoline_lock = draws.OneIn(4) ? 0 : 1;
  knobs.tsc_check = draws.OneIn(4) ? 1 : 0;
  knobs.tsc_check_us = 5;
  knobs.cache_setup = draws.OneIn(4) ? abi::CacheSetup::kRendezvous : abi::CacheSetup::kEach;
  knobs.topology_update =
      draws.OneIn(4) ? abi::TopologyUpdate::kLockless : abi::TopologyUpdate::kLocked;
  knobs.wait_spin_us = draws.OneIn(2) ? 1 : 50;
  knobs.control_spin_us = draws.OneIn(2) ? 1 : 1000;
  knobs.reuse_scope = static_cast<abi::ReuseScope>(draws.Below(4));
  config.clock_known = !draws.OneIn(4);
  config.apic_mode = draws.OneIn(4) ? abi::ApicMode::kXApic : abi::ApicMode::kX2Apic;
  config.scenario = draws.OneIn(2) ? abi::Scenario::kIpiAll : abi::Scenario::kSmpboot;
}

void DrawChaos(Draws& draws, bool faults, uint32_t cpus, sim::Chaos& chaos) {
  chaos.on = true;
  const uint64_t schedule = draws.Below(8);
  chaos.schedule = schedule == 0  ? Schedule::kTimed
                   : schedule < 4 ? Schedule::kRandom
                   : schedule < 6 ? Schedule::kSlowdowns
                                  : Schedule::kPct;
  chaos.change_points = 1 + static_cast<uint32_t>(draws.Below(4));
  chaos.expected_steps = 150 * cpus;
  chaos.store_buffer = draws.OneIn(2);
  const bool any = draws.OneIn(2) && faults;
  for (const RateName& rate : std::span(kRates).first<kBootRates>()) {
    const uint64_t kind = draws.Below(16);
    if (!any) continue;
    chaos.*rate.member = kind == 0 ? Rate::kWild : kind < 4 ? Rate::kRare : Rate::kOff;
  }
}

// APs that are slower to get there than the boot CPU is to call them.
void DrawHolds(Draws& draws, ExploreCase& drawn) {
  const bool any = draws.OneIn(4);
  for (uint32_t cpu = 0; cpu < drawn.config.cpus; ++cpu) {
    const uint64_t ns = draws.Below(uint64_t{1} << draws.Below(21));
    drawn.held_ns.push_back(any && cpu != 0 ? ns : 0);
  }
}

// In one of eight, APs that are late by the schedule alone, wherever on their way.
void DrawBound(Draws& draws, bool faults, ExploreCase& drawn) {
  static constexpr uint32_t kShortMs[] = {1, 1, 2, 3, 5, 10, 20};
  const uint32_t bound_ms = kShortMs[draws.Below(std::size(kShortMs))];
  drawn.short_bound = draws.OneIn(8) && faults;
  if (drawn.short_bound) drawn.config.knobs.handshake_timeout_ms = bound_ms;
}

// One step of one CPU fails, where the table says that it may; or its firmware lies, so that it
// must park.
void DrawFailure(Draws& draws, ExploreCase& drawn) {
  static constexpr uint64_t kStates[] = {1, 58, 82, 83, 84, 147, 234};
  const uint64_t state = kStates[draws.Below(std::size(kStates))];
  const auto cpu = static_cast<uint32_t>(1 + draws.Below(drawn.config.cpus - 1));
  drawn.config.fault.kind = abi::Fault::kFailStep;
  drawn.config.fault.cpu = cpu;
  drawn.config.fault.value = state;
  drawn.doomed_cpu = cpu;
  if (!draws.OneIn(4)) return;
  drawn.config.fault = {};
  drawn.config.knobs.ap_id_source = abi::ApIdSource::kCpuidB;
  drawn.firmware_lies = true;
}

}  // namespace

std::span<const RateName> RateNames() { return kRates; }

ExploreCase CaseOf(uint64_t seed, const ExploreSpace& space) {
  if (space.scenario == ExploreScenario::kRcu) return RcuCaseOf(seed, space);
  Draws draws(seed);
  ExploreCase drawn;
  drawn.seed = seed;
  RunConfig& config = drawn.config;
  config.machine = MachineKind::kSim;
  config.seed = seed;
  config.serial_fd = -1;
  const auto few = static_cast<uint32_t>(draws.OneIn(32) ? 8 : 2 + draws.Below(4));
  config.cpus = space.cpus != 0 ? space.cpus : few;
  const auto any = static_cast<sequence::StrategyId>(draws.Below(sequence::kStrategyCount));
  config.strategy = sequence::MakeStrategy(space.strategy.value_or(any));
  config.strategy.reuse_calibration = draws.OneIn(2) ? 1 : 0;
  config.strategy.overlap = draws.OneIn(4) ? 1 : 0;
  DrawKnobs(draws, config);
  config.topology = DrawTopology(draws, config.cpus, config.apic_mode);
  config.order = DrawOrder(draws, config.cpus);
  DrawBound(draws, space.faults, drawn);
  DrawHolds(draws, drawn);
  DrawChaos(draws, space.faults, config.cpus, drawn.chaos);
  // The ACPI PM timer wraps within such a freeze, and no sample could tell.
  if (drawn.chaos.frozen != Rate::kOff && !drawn.short_bound) config.clock_known = true;
  if (draws.OneIn(8) && space.faults && config.cpus > 1) DrawFailure(draws, drawn);
  const bool retry = draws.OneIn(4);
  config.retry = space.retry.value_or(retry);
  config.settle = true;
  drawn.chaos.canary = space.canary;
  return drawn;
}

sim::Options OptionsOf(const ExploreCase& explored, const ArenaLayout& arena) {
  const RunConfig& config = explored.config;
  sim::Options options;
  options.cpus.reserve(config.cpus);
  for (const CpuPlace& place : config.topology.places) {
    sim::CpuPlace its;
    its.apic_id = place.apic_id;
    its.package = place.package;
    options.cpus.push_back(its);
  }
  for (uint32_t cpu = 0; cpu < config.cpus; ++cpu) {
    options.cpus[cpu].held_ns = explored.held_ns[cpu];
  }
  if (explored.firmware_lies && config.cpus != 0) {
    const uint32_t other = (*explored.doomed_cpu + 1) % config.cpus;
    options.cpus[*explored.doomed_cpu].shown_apic_id = config.topology.places[other].apic_id;
  }
  options.seed = config.seed;
  options.chaos = explored.chaos;
  options.choices = explored.choices;
  // A bound for each handshake there is, several times over, with another try for each CPU and one
  // more once the faults have ended: who has not converged by then never will.
  constexpr uint64_t kNsPerMs = 1'000'000;
  constexpr uint64_t kLongestBoundMs = 60'000;  // after the faults have ended
  options.time_limit_ns = kLongestBoundMs * kNsPerMs * (6 * uint64_t{config.cpus} + 12);
  if (ExploresRcu(explored)) options.time_limit_ns = kRcuTimeLimitMs * kNsPerMs;
  options.memory_bytes = arena.end.value;
  options.boot_params = BuildBootParams(config, arena, options.tsc_khz);
  return options;
}

std::string Describe(const ExploreCase& explored) {
  const RunConfig& config = explored.config;
  std::string text = absl::StrCat("seed ", explored.seed, ": ", config.cpus, " CPUs, ",
                                  StrategyName(config.strategy));
  if (config.retry) absl::StrAppend(&text, ", retry");
  if (ExploresRcu(explored)) absl::StrAppend(&text, DescribeRcu(config));
  absl::StrAppend(&text, DescribeTopology(config.topology), DescribeOrder(config.order));
  if (explored.short_bound) {
    absl::StrAppend(&text, ", handshakes of ", config.knobs.handshake_timeout_ms, " ms");
  }
  if (config.knobs.tsc_check != 0) absl::StrAppend(&text, ", tsc-check");
  if (config.knobs.ap_wait == abi::WaitMode::kSpin) absl::StrAppend(&text, ", ap-wait=spin");
  if (config.knobs.cache_setup == abi::CacheSetup::kRendezvous) {
    absl::StrAppend(&text, ", cache-setup=rendezvous");
  }
  switch (explored.chaos.schedule) {
    case Schedule::kTimed:
      break;
    case Schedule::kRandom:
      absl::StrAppend(&text, ", random schedule");
      break;
    case Schedule::kChosen:
      absl::StrAppend(&text, ", at most ", explored.chaos.preemptions, " preemptions");
      break;
    case Schedule::kSlowdowns:
      absl::StrAppend(&text, ", slowdowns with ", explored.chaos.change_points, " change points");
      break;
    case Schedule::kPct:
      absl::StrAppend(&text, ", PCT with ", explored.chaos.change_points, " change points");
      break;
  }
  if (explored.chaos.store_buffer) absl::StrAppend(&text, ", store buffer");
  for (const RateName& rate : kRates) {
    const Rate its = explored.chaos.*rate.member;
    if (its != Rate::kOff) {
      absl::StrAppend(&text, ", ", rate.name, its == Rate::kWild ? " wild" : " rare");
    }
  }
  for (uint32_t cpu = 0; cpu < config.cpus; ++cpu) {
    if (explored.held_ns[cpu] == 0) continue;
    absl::StrAppend(&text, ", CPU ", cpu, " held for ", explored.held_ns[cpu], " ns");
  }
  if (explored.firmware_lies) {
    absl::StrAppend(&text, ", firmware-lies=", *explored.doomed_cpu);
  } else if (explored.doomed_cpu) {
    const bool step = config.fault.kind == abi::Fault::kFailStep;
    absl::StrAppend(&text, step ? ", fail-step@" : ", the given fault@", *explored.doomed_cpu, ":",
                    config.fault.value);
  }
  return text;
}

}  // namespace sipi
