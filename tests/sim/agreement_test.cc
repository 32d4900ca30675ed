// KVM and the simulator run the same guest, so each CPU's own events come in the same order, and
// the same INITs, SIPIs and function call IPIs are sent. Not compared: when anything happens, and
// what depends on that (wake-up IPIs, which go to CPUs that have halted already; rejected
// calibration samples). With KVM's own APICs (irqchip split and kernel) nobody counts what is
// delivered; there the guest's own counts are compared.
//
// Every knob value is met by every strategy: with two CPUs on each irqchip, with eight on one of
// the three. SIPI_E2E_FULL=1 has all of it from 2 to 64 CPUs.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "apic/regs/icr.h"
#include "guest/abi/layout.h"
#include "tests/sim/simulated.h"

namespace sipi {
namespace {

using abi::TraceEvent;
using sequence::StrategyId;

// An AP's own events; for the boot CPU those that concern one AP, since while it waits for one it
// may get the next one ready.
using Track = std::pair<int32_t, uint16_t>;
using Step = std::tuple<TraceEvent, uint16_t, uint32_t>;

bool DependsOnTime(const Event& event) {
  switch (event.name) {
    case TraceEvent::kCalibrateRejected:
    case TraceEvent::kWake:
      return true;
    case TraceEvent::kIcrWrite:
      return apic::Icr::FromLow(event.value, 0).vector.value == abi::kWakeVector;
    default:
      return event.name >= TraceEvent::kHostFirst;
  }
}

std::map<Track, std::vector<Step>> StepsOf(const RunRecord& record) {
  std::map<Track, std::vector<Step>> steps;
  for (const Event& event : record.events) {
    if (DependsOnTime(event)) continue;
    const bool measured = event.name == TraceEvent::kCalibrateEnd ||
                          event.name == TraceEvent::kCalibrateReused ||
                          event.name == TraceEvent::kTscCheckEnd;
    const Track track(event.cpu, event.cpu == 0 ? event.target : uint16_t{0});
    steps[track].emplace_back(event.name, event.target, measured ? 0 : event.value);
  }
  return steps;
}

std::map<uint32_t, uint64_t> CommandsOf(const RunRecord& record) {
  std::map<uint32_t, uint64_t> counts;  // by ICR bits 31:0
  for (const Event& event : record.events) {
    if (event.name == TraceEvent::kIcrWrite && !DependsOnTime(event)) ++counts[event.value];
  }
  return counts;
}

void ExpectAgreement(RunConfig config) {
  const IrqchipKind irqchip = config.irqchip;
  config.irqchip = IrqchipKind::kUser;
  config.machine = MachineKind::kSim;
  const RunRecord simulated = RunIt(config);
  config.irqchip = irqchip;
  config.machine = MachineKind::kKvm;
  config.time_limit_ms = 60'000;
  const RunRecord real = RunIt(config);
  ASSERT_EQ(real.outcome, Outcome::kComplete) << real.diagnosis;
  ASSERT_EQ(simulated.outcome, Outcome::kComplete) << simulated.diagnosis;
  const auto real_steps = StepsOf(real);
  const auto simulated_steps = StepsOf(simulated);
  ASSERT_EQ(real_steps.size(), simulated_steps.size());
  for (const auto& [track, steps] : real_steps) {
    const auto found = simulated_steps.find(track);
    ASSERT_NE(found, simulated_steps.end()) << "CPU " << track.first << ", " << track.second;
    EXPECT_TRUE(steps == found->second)
        << "CPU " << track.first << ", target " << track.second << ": " << steps.size() << " and "
        << found->second.size() << " events";
  }
  EXPECT_EQ(CommandsOf(real), CommandsOf(simulated));
  // A broadcast also reaches siblings that nobody waits for: the run may end before they take it.
  const bool all_waited_for = config.smt || config.strategy.id != StrategyId::kBroadcast;
  for (const char* counter : {"guest.inits", "guest.startups", "inits", "startups"}) {
    const bool told = config.irqchip == IrqchipKind::kUser && all_waited_for;
    if (!told && counter[0] != 'g') continue;
    EXPECT_EQ(real.counters.at(counter), simulated.counters.at(counter)) << counter;
  }
}

struct KnobValue {
  const char* name;
  void (*set)(RunConfig& config);
};

void Reuse(RunConfig& config, abi::ReuseScope scope) {
  config = WithTopology(
      config, config.cpus == 2 ? "cores=1,threads=2"
                               : "sockets=2,threads=2,cores=" + std::to_string(config.cpus / 4));
  config.strategy.reuse_calibration = 1;
  config.knobs.reuse_scope = scope;
}

// Within a core or package the first CPU to calibrate serves the others: which one that is depends
// on time where APs run at once, so there this is as good as `defaults`.
void ReuseInOrder(RunConfig& config, abi::ReuseScope scope) {
  const StrategyId id = config.strategy.id;
  const bool in_order =
      id == StrategyId::kSerial || id == StrategyId::kKick || id == StrategyId::kPrimaryFirst;
  if (in_order) Reuse(config, scope);
}

constexpr KnobValue kKnobValues[] = {
    {"defaults", [](RunConfig&) {}},
    {"ap-wait=spin", [](RunConfig& c) { c.knobs.ap_wait = abi::WaitMode::kSpin; }},
    {"ap-id=cpuid-b", [](RunConfig& c) { c.knobs.ap_id_source = abi::ApIdSource::kCpuidB; }},
    {"ap-id=cpuid-1", [](RunConfig& c) { c.knobs.ap_id_source = abi::ApIdSource::kCpuid1; }},
    {"trampoline-lock=off", [](RunConfig& c) { c.knobs.trampoline_lock = 0; }},
    {"cache-setup=rendezvous",
     [](RunConfig& c) { c.knobs.cache_setup = abi::CacheSetup::kRendezvous; }},
    {"topology-update=lockless",
     [](RunConfig& c) { c.knobs.topology_update = abi::TopologyUpdate::kLockless; }},
    {"tsc-check=on",
     [](RunConfig& c) {
       c.knobs.tsc_check = 1;
       c.knobs.tsc_check_us = 100;
     }},
    {"reuse-scope=machine", [](RunConfig& c) { Reuse(c, abi::ReuseScope::kMachine); }},
    {"reuse-scope=cpu", [](RunConfig& c) { Reuse(c, abi::ReuseScope::kCpu); }},
    {"reuse-scope=core", [](RunConfig& c) { ReuseInOrder(c, abi::ReuseScope::kCore); }},
    {"reuse-scope=package", [](RunConfig& c) { ReuseInOrder(c, abi::ReuseScope::kPackage); }},
    {"overlap", [](RunConfig& c) { c.strategy.overlap = 1; }},
    {"veto=vendor", [](RunConfig& c) { c.knobs.veto = abi::Veto::kVendor; }},
    {"clock=known", [](RunConfig& c) { c.clock_known = true; }},
    {"calibration-us=200", [](RunConfig& c) { c.knobs.calibration_us = 200; }},
    {"sipi-count=1", [](RunConfig& c) { c.knobs.kick.sipi_count = 1; }},
    {"sipi-count=3", [](RunConfig& c) { c.knobs.kick.sipi_count = 3; }},
    {"sipi-delay-us=300+200",
     [](RunConfig& c) {
       c.knobs.kick.sipi_delay_us = 300;
       c.knobs.kick.sipi_idle_delay_us = 200;
     }},
    {"init-delay-us=1000", [](RunConfig& c) { c.knobs.kick.init_delay_us = 1'000; }},
    {"init-deassert", [](RunConfig& c) { c.knobs.kick.init_deassert = 1; }},
    {"apic=xapic", [](RunConfig& c) { c.apic_mode = abi::ApicMode::kXApic; }},
    {"hide=tsc-deadline", [](RunConfig& c) { c.hidden.tsc_deadline = true; }},
    {"threads=2",
     [](RunConfig& c) { c = WithTopology(c, "threads=2,cores=" + std::to_string(c.cpus / 2)); }},
    {"smt=off",
     [](RunConfig& c) {
       c = WithTopology(c, "threads=2,cores=" + std::to_string(c.cpus / 2));
       c.smt = false;
       std::erase_if(c.order, [&c](uint32_t cpu) { return c.topology.places[cpu].thread != 0; });
     }},
};

constexpr IrqchipKind kIrqchips[] = {IrqchipKind::kUser, IrqchipKind::kSplit, IrqchipKind::kKernel};

void ExpectAgreementOf(uint32_t cpus, StrategyId strategy, IrqchipKind irqchip,
                       const KnobValue& knob) {
  SCOPED_TRACE(std::to_string(cpus) + " CPUs, irqchip " +
               std::to_string(static_cast<int>(irqchip)) + ", " + knob.name);
  RunConfig config = SimulatedConfig(cpus, strategy);
  config.irqchip = irqchip;
  config.scenario = abi::Scenario::kIpiAll;
  knob.set(config);
  ExpectAgreement(config);
}

class Agreement : public ::testing::TestWithParam<StrategyId> {
 protected:
  void SetUp() override {
    if (access("/dev/kvm", R_OK | W_OK) != 0) GTEST_SKIP() << "no usable /dev/kvm";
  }
};

TEST_P(Agreement, EachCpusEventsComeInTheSameOrder) {
  for (const uint32_t cpus : {2u, 5u, 16u, 64u}) {
    SCOPED_TRACE(cpus);
    RunConfig config = SimulatedConfig(cpus, GetParam());
    config.scenario = abi::Scenario::kIpiAll;
    ExpectAgreement(config);
  }
}

TEST_P(Agreement, WithSiblingsReuseAndTheOtherKnobs) {
  RunConfig config = WithTopology(SimulatedConfig(0, GetParam()), "cores=4,threads=2");
  config.strategy.reuse_calibration = 1;
  config.knobs.cache_setup = abi::CacheSetup::kRendezvous;
  config.knobs.trampoline_lock = 0;
  config.knobs.kick.sipi_count = 1;
  config.knobs.kick.init_deassert = 1;
  config.apic_mode = abi::ApicMode::kXApic;
  ExpectAgreement(config);
}

TEST_P(Agreement, EachKnobValueOnEachIrqchip) {
  for (const IrqchipKind irqchip : kIrqchips) {
    for (const KnobValue& knob : kKnobValues) ExpectAgreementOf(2, GetParam(), irqchip, knob);
  }
}

TEST_P(Agreement, EachKnobValueWithEightCpus) {
  auto turn = static_cast<size_t>(GetParam());
  for (const KnobValue& knob : kKnobValues) {
    ExpectAgreementOf(8, GetParam(), kIrqchips[turn++ % std::size(kIrqchips)], knob);
  }
}

TEST_P(Agreement, FullUpTo64Cpus) {
  if (std::getenv("SIPI_E2E_FULL") == nullptr) {
    GTEST_SKIP() << "takes minutes; SIPI_E2E_FULL=1 runs it";
  }
  for (const uint32_t cpus : {2u, 4u, 8u, 16u, 32u, 64u}) {
    for (const IrqchipKind irqchip : kIrqchips) {
      for (const KnobValue& knob : kKnobValues) ExpectAgreementOf(cpus, GetParam(), irqchip, knob);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EachStrategy, Agreement, ::testing::ValuesIn(kAllStrategies),
                         [](const auto& param_info) {
                           std::string name = sequence::BaseName(param_info.param);
                           for (char& c : name) c = c == '+' || c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace sipi
