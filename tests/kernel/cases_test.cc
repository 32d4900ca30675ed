// The kernel's cases (guest/scenario/cases.h) on vCPUs and on simulated CPUs: the same lines.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "vmm/machine/run.h"

namespace sipi {
namespace {

using abi::TraceEvent;

bool KvmIsMissing() {
  const int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
  if (kvm >= 0) close(kvm);
  return kvm < 0;
}

RunConfig ConfigOf(MachineKind machine, uint32_t cpus, uint64_t number) {
  RunConfig config;
  config.machine = machine;
  config.cpus = cpus;
  config.time_limit_ms = machine == MachineKind::kSim ? 1'000'000 : 120'000;
  config.topology = FlatTopology(cpus);
  for (uint32_t cpu = 1; cpu < cpus; ++cpu) config.order.push_back(cpu);
  config.strategy = sequence::MakeStrategy(sequence::StrategyId::kFull);
  config.serial_fd = -1;
  config.scenario = abi::Scenario::kCases;
  config.scenario_value = number;
  config.kernel.services = 1;
  return config;
}

RunRecord RunOf(const RunConfig& config) {
  StopRequest stop;
  absl::StatusOr<RunRecord> record = RunMachine(config, stop);
  EXPECT_TRUE(record.ok()) << record.status();
  return record.ok() ? *std::move(record) : RunRecord();
}

class Cases : public testing::TestWithParam<MachineKind> {
 protected:
  void SetUp() override {
    if (GetParam() == MachineKind::kKvm && KvmIsMissing())
      GTEST_SKIP() << "/dev/kvm cannot be opened";
  }

  // The case ends, and all CPUs are there.
  static void ExpectComplete(const RunConfig& config) {
    const RunRecord record = RunOf(config);
    EXPECT_EQ(record.outcome, Outcome::kComplete) << record.diagnosis;
    EXPECT_EQ(record.cpus_online, config.cpus);
  }

  static RunConfig Config(uint32_t cpus, uint64_t number) {
    return ConfigOf(GetParam(), cpus, number);
  }
};
INSTANTIATE_TEST_SUITE_P(Machines, Cases, testing::Values(MachineKind::kSim, MachineKind::kKvm),
                         [](const auto& instance) {
                           return instance.param == MachineKind::kSim ? "sim" : "kvm";
                         });

// CPU 3 never starts, or fails in a step. A loop that takes a count for a highest number misses
// CPU 7; the tree has two levels, and CPU 3's leaf another CPU.
TEST_P(Cases, G5TheOthersAreServedWhereOneIsMissing) {
  for (const auto kind : {abi::Fault::kNoStart, abi::Fault::kFailStep}) {
    RunConfig config = Config(8, 5);
    config.fault = {.kind = kind, .cpu = 3, .value = 58};
    config.knobs.handshake_timeout_ms = 3'000;
    config.kernel.rcu_fanout_leaf = 2;
    const RunRecord record = RunOf(config);
    EXPECT_EQ(record.outcome, Outcome::kPartial) << record.diagnosis;
    EXPECT_EQ(record.cpus_online, 7u);
  }
}

TEST_P(Cases, G7AStepWaitsForAnExpeditedGracePeriod) { ExpectComplete(Config(3, 7)); }

TEST_P(Cases, G9CallbacksLeftBehindRunOnceBeforeStepAndBarrierReturn) {
  for (const auto flavour : {abi::RcuFlavour::kPreemptible, abi::RcuFlavour::kNonPreemptible}) {
    RunConfig config = Config(4, 9);
    config.kernel.rcu_flavour = flavour;
    config.kernel.rcu_fanout_leaf = 2;
    const RunRecord record = RunOf(config);
    EXPECT_EQ(record.outcome, Outcome::kComplete) << record.diagnosis;
    const auto moved = [](const Event& event) {
      return event.name == TraceEvent::kCallbacksMigrated && event.target == 2;
    };
    const auto event = std::find_if(record.events.begin(), record.events.end(), moved);
    ASSERT_NE(event, record.events.end());
    EXPECT_GE(event->value, 1000u);
  }
}

TEST_P(Cases, G10GracePeriodsAtEachStageOfBoot) {
  for (const uint8_t expedited : {uint8_t{1}, uint8_t{0}}) {
    RunConfig config = Config(4, 10);
    config.kernel.boot_expedited = expedited;
    config.kernel.boot_grace_periods = 1;
    ExpectComplete(config);
  }
}

// Then off and on: a thousand rounds of simulated CPUs, ten of vCPUs.
TEST_P(Cases, G11EveryStepFailsAndIsUndoneOnceThenAThousandRounds) {
  for (const auto steps : {abi::HotplugSteps::kX86, abi::HotplugSteps::kPseries}) {
    RunConfig config = Config(3, 11);
    config.kernel.hotplug_steps = steps;
    config.kernel.rcu_expedited = 1;
    config.scenario_knobs.rounds = GetParam() == MachineKind::kSim ? 1000 : 10;
    ExpectComplete(config);
  }
}

TEST_P(Cases, G12TheReaderIsWaitedForAndNotItsCpu) {
  RunConfig config = Config(4, 12);
  config.kernel.rcu_fanout_leaf = 2;
  ExpectComplete(config);
}

TEST_P(Cases, G13ExpeditingNestsAndACallTooManyIsReported) {
  const RunRecord record = RunOf(Config(2, 13));
  EXPECT_EQ(record.outcome, Outcome::kComplete) << record.diagnosis;
  const auto unbalanced = [](const Event& event) {
    return event.name == TraceEvent::kExpediteNesting && event.value == ~0u;
  };
  EXPECT_EQ(std::count_if(record.events.begin(), record.events.end(), unbalanced), 1);
}

}  // namespace
}  // namespace sipi
