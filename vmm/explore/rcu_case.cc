#include "vmm/explore/rcu_case.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "vmm/explore/draws.h"

namespace sipi {
namespace {

using sim::Rate;
using sim::Schedule;

void DrawKernel(Draws& draws, RunConfig& config) {
  static constexpr uint32_t kHz[] = {250, 1000};
  static constexpr uint16_t kLeaf[] = {2, 2, 3, 16};
  static constexpr uint16_t kFanout[] = {2, 3, 64};
  abi::KernelKnobs& kernel = config.kernel;
  kernel.services = 1;
  kernel.hz = kHz[draws.Below(std::size(kHz))];
  kernel.rcu_flavour =
      draws.OneIn(4) ? abi::RcuFlavour::kNonPreemptible : abi::RcuFlavour::kPreemptible;
  kernel.preemption = static_cast<abi::Preemption>(draws.Below(4));
  // Without preemption a preemptible reader is never preempted: seldom.
  if (draws.OneIn(2)) kernel.preemption = abi::Preemption::kFull;
  kernel.hotplug_steps = draws.OneIn(4) ? abi::HotplugSteps::kPseries : abi::HotplugSteps::kX86;
  kernel.boot_grace_periods = draws.OneIn(8) ? 1 : 0;
  kernel.boot_expedited = draws.OneIn(2) ? 1 : 0;
  kernel.rcu_expedited = draws.OneIn(8) ? 1 : 0;
  kernel.rcu_normal = draws.OneIn(8) ? 1 : 0;
  kernel.rcu_normal_wake_from_gp = draws.OneIn(2) ? 1 : 0;
  kernel.rcu_exp_parallel = draws.OneIn(2) ? 1 : 0;
  kernel.rcu_fanout_leaf = kLeaf[draws.Below(std::size(kLeaf))];
  kernel.rcu_fanout = kFanout[draws.Below(std::size(kFanout))];
  if (kernel.rcu_fanout_leaf == 16) kernel.rcu_fanout = 64;
  // Linux's waits, mostly; else grace periods that end as soon as they can.
  if (draws.OneIn(3)) kernel.jiffies_till_first_fqs = static_cast<uint32_t>(draws.Below(2));
  config.scenario_knobs.seed = config.seed;
  config.scenario_knobs.rounds = static_cast<uint32_t>(1 + draws.Below(4));
}

void DrawChaos(Draws& draws, bool faults, uint32_t cpus, sim::Chaos& chaos) {
  chaos.on = true;
  chaos.calls_need_life = true;
  const uint64_t schedule = draws.Below(8);
  chaos.schedule = schedule == 0  ? Schedule::kTimed
                   : schedule < 5 ? Schedule::kRandom
                   : schedule < 6 ? Schedule::kSlowdowns
                                  : Schedule::kPct;
  chaos.slowdown = 4;
  chaos.change_points = 1 + static_cast<uint32_t>(draws.Below(8));
  chaos.expected_steps = 4000 * cpus;
  chaos.store_buffer = draws.OneIn(2);
  const bool any = draws.OneIn(2) && faults;
  // What a machine may do to a running kernel: it is late, or says it twice.
  for (sim::Rate sim::Chaos::*rate : {&sim::Chaos::delayed_ipi, &sim::Chaos::duplicated_ipi,
                                      &sim::Chaos::stall, &sim::Chaos::late_timer}) {
    const uint64_t kind = draws.Below(8);
    if (any) chaos.*rate = kind == 0 ? Rate::kWild : kind < 4 ? Rate::kRare : Rate::kOff;
  }
  // Threads that lose their CPU where they are: no fault, but another schedule.
  chaos.resched = draws.OneIn(2) ? Rate::kRare : Rate::kOff;
  const uint64_t delay = draws.Below(4);
  chaos.rcu_delay = delay == 0 ? Rate::kWild : delay == 1 ? Rate::kRare : Rate::kOff;
}

}  // namespace

bool ExploresRcu(const ExploreCase& explored) { return explored.config.kernel.services != 0; }

ExploreCase RcuCaseOf(uint64_t seed, const ExploreSpace& space) {
  Draws draws(seed);
  ExploreCase drawn;
  drawn.seed = seed;
  RunConfig& config = drawn.config;
  config.machine = MachineKind::kSim;
  config.seed = seed;
  config.serial_fd = -1;
  const auto few = static_cast<uint32_t>(draws.OneIn(32) ? 8 : 2 + draws.Below(4));
  config.cpus = space.cpus != 0 ? space.cpus : few;
  config.topology = FlatTopology(config.cpus);
  for (uint32_t cpu = 1; cpu < config.cpus; ++cpu) config.order.push_back(cpu);
  const auto any = static_cast<sequence::StrategyId>(draws.Below(sequence::kStrategyCount));
  config.strategy = sequence::MakeStrategy(space.strategy.value_or(any));
  config.strategy.reuse_calibration = 1;
  config.clock_known = true;
  config.scenario = abi::Scenario::kRcuExplore;
  config.knobs.handshake_timeout_ms = 10'000;
  config.knobs.calibration_us = 20;
  config.knobs.kick.sipi_delay_us = 1;
  config.knobs.kick.sipi_idle_delay_us = 0;
  config.knobs.wait_spin_us = draws.OneIn(2) ? 1 : 50;
  config.knobs.control_spin_us = draws.OneIn(2) ? 1 : 1000;
  config.apic_mode = draws.OneIn(4) ? abi::ApicMode::kXApic : abi::ApicMode::kX2Apic;
  drawn.held_ns.assign(config.cpus, 0);
  DrawKernel(draws, config);
  DrawChaos(draws, space.faults, config.cpus, drawn.chaos);
  drawn.chaos.canary = space.canary;
  return drawn;
}

ExploreCase ExpHotplugCase(uint64_t met_at) {
  ExploreCase plain;
  RunConfig& config = plain.config;
  config.machine = MachineKind::kSim;
  config.serial_fd = -1;
  config.cpus = 3;
  config.topology = FlatTopology(config.cpus);
  config.order = {1, 2};
  config.strategy = sequence::MakeStrategy(sequence::StrategyId::kSerial);
  config.strategy.reuse_calibration = 1;
  config.clock_known = true;
  config.scenario = abi::Scenario::kExpHotplug;
  config.scenario_value = met_at;
  config.knobs.handshake_timeout_ms = 10'000;
  config.knobs.calibration_us = 20;
  config.knobs.kick.sipi_delay_us = 1;
  config.knobs.kick.sipi_idle_delay_us = 0;
  config.knobs.wait_spin_us = 1;
  config.knobs.control_spin_us = 1;
  config.kernel.services = 1;
  config.kernel.rcu_fanout = 2;
  config.kernel.rcu_fanout_leaf = 2;  // two leaves
  config.kernel.boot_expedited = 0;
  plain.held_ns.assign(config.cpus, 0);
  return plain;
}

std::string MeetingText(uint64_t met_at) {
  return absl::StrCat((met_at & kUpwards) != 0 ? "up:" : "down:", met_at & 0xffffffff);
}

std::string MetAt(uint64_t met_at) {
  const auto state = static_cast<abi::CpuhpState>(met_at & 0xffffffff);
  return absl::StrCat(abi::Name(state),
                      (met_at & kUpwards) != 0 ? " on the way up" : " on the way down");
}

std::string DescribeRcu(const RunConfig& config) {
  static constexpr const char* kPreemption[] = {"none", "voluntary", "full", "lazy"};
  const abi::KernelKnobs& kernel = config.kernel;
  const bool preemptible = kernel.rcu_flavour == abi::RcuFlavour::kPreemptible;
  return absl::StrCat(preemptible ? ", preemptible" : ", non-preemptible", " RCU, preemption ",
                      kPreemption[static_cast<uint32_t>(kernel.preemption)], ", fan-out ",
                      kernel.rcu_fanout, "/", kernel.rcu_fanout_leaf, ", hz ", kernel.hz, ", ",
                      config.scenario_knobs.rounds, " rounds",
                      kernel.rcu_expedited != 0 ? ", rcu_expedited" : "",
                      kernel.rcu_normal != 0 ? ", rcu_normal" : "",
                      kernel.rcu_exp_parallel != 0 ? ", parallel selection" : "",
                      kernel.rcu_normal_wake_from_gp != 0 ? ", wake-from-gp" : "",
                      kernel.hotplug_steps == abi::HotplugSteps::kPseries ? ", pseries" : "");
}

}  // namespace sipi
