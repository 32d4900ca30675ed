// KVM and the simulator run the same guest, so each CPU's own events come in the same order, and
// the same INITs, SIPIs and function call IPIs are sent. Not compared: when anything happens, and
// what depends on that (wake-up IPIs, which go to CPUs that have halted already; rejected
// calibration samples).
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
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
  config.machine = MachineKind::kSim;
  const RunRecord simulated = RunIt(config);
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
  for (const char* counter : {"guest.inits", "guest.startups", "inits", "startups"}) {
    if (config.irqchip != IrqchipKind::kUser && counter[0] != 'g') continue;  // KVM does not tell
    EXPECT_EQ(real.counters.at(counter), simulated.counters.at(counter)) << counter;
  }
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

INSTANTIATE_TEST_SUITE_P(EachStrategy, Agreement, ::testing::ValuesIn(kAllStrategies),
                         [](const auto& param_info) {
                           std::string name = sequence::BaseName(param_info.param);
                           for (char& c : name) c = c == '+' || c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace sipi
