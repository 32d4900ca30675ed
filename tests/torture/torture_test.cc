// rcutorture on the simulator: sizes, flavours, trees of several levels, seeds; CPUs that come and
// go.
#include <iterator>
#include <numeric>

#include "guest/kernel/hotplug/state.h"
#include "guest/kernel/rcu/read_side.h"
#include "guest/kernel/sched/time.h"
#include "guest/scenario/crew.h"
#include "tests/torture/scenario_run.h"

namespace sipi {
namespace {

struct Setting {
  uint32_t cpus = 2;
  abi::RcuFlavour flavour = abi::RcuFlavour::kPreemptible;
  abi::Preemption preemption = abi::Preemption::kFull;
  uint16_t fanout = 64;
  uint16_t fanout_leaf = 16;
  uint64_t seed = 1;
  uint32_t duration_ms = 200;
};

void PrintTo(const Setting& setting, std::ostream* os) {
  *os << setting.cpus << " CPUs, flavour " << int{static_cast<uint8_t>(setting.flavour)}
      << ", preemption " << int{static_cast<uint8_t>(setting.preemption)} << ", fan-out "
      << setting.fanout << "/" << setting.fanout_leaf << ", seed " << setting.seed;
}

ScenarioRun Torment(const Setting& setting) {
  KernelOptions options;
  options.cpus = setting.cpus;
  options.seed = setting.seed;
  options.kernel.rcu_flavour = setting.flavour;
  options.kernel.preemption = setting.preemption;
  options.kernel.rcu_fanout = setting.fanout;
  options.kernel.rcu_fanout_leaf = setting.fanout_leaf;
  options.scenario.seed = setting.seed;
  options.scenario.duration_ms = setting.duration_ms;
  return RunScenario(options, RunTorture);
}

void ExpectSuccess(const ScenarioRun& run) {
  EXPECT_TRUE(run.ok) << run.end;
  EXPECT_EQ(run.counters.failures, 0u) << "checks" << run.Values(abi::TraceEvent::kTortureFailure);
  EXPECT_EQ(run.counters.callbacks_queued, run.counters.callbacks_run);
  EXPECT_GT(run.counters.gp_seq_end, run.counters.gp_seq_begin);
  EXPECT_GT(run.counters.exp_seq_end, run.counters.exp_seq_begin);
}

template <size_t N>
uint64_t Sum(const uint64_t (&counts)[N]) {
  return std::accumulate(std::begin(counts), std::end(counts), uint64_t{0});
}

// A reader of the report can add them up.
void ExpectSums(const ScenarioRun& run) {
  EXPECT_EQ(Sum(run.counters.pipe), run.counters.reads);
  EXPECT_EQ(Sum(run.counters.batch), run.counters.reads);
  EXPECT_EQ(Sum(run.counters.updates_by_kind), run.counters.updates);
}

// Nothing was checked in vain: each part of the torture has done its work.
void ExpectBusy(const ScenarioRun& run) {
  EXPECT_GT(run.counters.reads, 100u);
  EXPECT_GT(run.counters.updates, 5u);
  EXPECT_GT(run.counters.order_checks, 100u);
  EXPECT_GT(run.counters.cookie_checks, 100u);
  EXPECT_GT(run.counters.barrier_tries, 2u);
  EXPECT_GE(run.counters.flood_callbacks, 300u);
  EXPECT_GT(run.counters.callbacks_run, 300u);
}

class Torture : public testing::TestWithParam<Setting> {};

TEST_P(Torture, FindsNothing) {
  const ScenarioRun run = Torment(GetParam());
  ExpectSuccess(run);
  ExpectBusy(run);
  ExpectSums(run);
  EXPECT_GT(run.counters.offline_ok, 0u);
  EXPECT_EQ(run.cpus_online, GetParam().cpus) << "all are back at the end";
}

constexpr auto kNonPreemptible = abi::RcuFlavour::kNonPreemptible;

INSTANTIATE_TEST_SUITE_P(Sizes, Torture,
                         testing::Values(Setting{.cpus = 2}, Setting{.cpus = 3}, Setting{.cpus = 8},
                                         Setting{.cpus = 16},
                                         Setting{.cpus = 2, .flavour = kNonPreemptible},
                                         Setting{.cpus = 3, .flavour = kNonPreemptible},
                                         Setting{.cpus = 8, .flavour = kNonPreemptible},
                                         Setting{.cpus = 16, .flavour = kNonPreemptible}));

INSTANTIATE_TEST_SUITE_P(
    Trees, Torture,
    testing::Values(Setting{.cpus = 8, .fanout = 2, .fanout_leaf = 2},
                    Setting{.cpus = 8, .flavour = kNonPreemptible, .fanout = 2, .fanout_leaf = 2},
                    Setting{.cpus = 16, .fanout = 3, .fanout_leaf = 2},
                    Setting{
                        .cpus = 16, .flavour = kNonPreemptible, .fanout = 3, .fanout_leaf = 3}));

INSTANTIATE_TEST_SUITE_P(
    PreemptionModels, Torture,
    testing::Values(
        Setting{.cpus = 3, .flavour = kNonPreemptible, .preemption = abi::Preemption::kNone},
        Setting{.cpus = 3, .flavour = kNonPreemptible, .preemption = abi::Preemption::kVoluntary},
        Setting{.cpus = 3, .flavour = kNonPreemptible, .preemption = abi::Preemption::kLazy},
        Setting{.cpus = 3, .preemption = abi::Preemption::kLazy}));

INSTANTIATE_TEST_SUITE_P(
    Seeds, Torture,
    testing::Values(
        Setting{.cpus = 4, .fanout = 2, .fanout_leaf = 2, .seed = 2},
        Setting{.cpus = 4, .fanout = 2, .fanout_leaf = 2, .seed = 3},
        Setting{.cpus = 4, .fanout = 2, .fanout_leaf = 2, .seed = 4},
        Setting{.cpus = 4, .flavour = kNonPreemptible, .fanout = 2, .fanout_leaf = 2, .seed = 5}));

TEST(Torture, HasAsManyFakeWritersAsAreAskedFor) {
  const auto waits = [](uint32_t writers) {
    KernelOptions options;
    options.cpus = 4;
    options.scenario.writers = writers;
    options.scenario.duration_ms = 100;
    const ScenarioRun run = RunScenario(options, RunTorture);
    ExpectSuccess(run);
    uint64_t sum = 0;
    for (const uint64_t each : run.counters.updates_by_kind) sum += each;
    return sum;
  };
  EXPECT_GT(waits(12), 2 * waits(1));
}

TEST(Torture, TheSameSeedGivesTheSameRun) {
  const ScenarioRun a = Torment({.cpus = 4, .seed = 7, .duration_ms = 60});
  const ScenarioRun b = Torment({.cpus = 4, .seed = 7, .duration_ms = 60});
  EXPECT_EQ(0, memcmp(&a.counters, &b.counters, sizeof(a.counters)));
  EXPECT_EQ(a.now_ns, b.now_ns);
  const ScenarioRun other = Torment({.cpus = 4, .seed = 8, .duration_ms = 60});
  EXPECT_NE(0, memcmp(&a.counters, &other.counters, sizeof(a.counters)));
}

// CPUs go off and on at random, beside readers, updaters, barriers and floods.
TEST(Torture, AThousandRandomOnOffOperationsLoseNoCallback) {
  const ScenarioRun run =
      Torment({.cpus = 4, .fanout = 2, .fanout_leaf = 2, .seed = 11, .duration_ms = 12'000});
  ExpectSuccess(run);
  EXPECT_GE(run.counters.offline_ok + run.counters.online_ok, 1000u);
  EXPECT_EQ(run.counters.offline_ok, run.counters.offline_tried);
  EXPECT_EQ(run.counters.online_ok, run.counters.online_tried);
}

uint64_t FailuresOf(const ScenarioRun& run, abi::TortureCheck check) {
  return run.counters.failures_by_check[static_cast<uint32_t>(check)];
}

// rcu_normal forbids expedited grace periods, whoever asks for them; rcu_expedited makes those that
// threads wait for expedited, and callbacks still wait for normal ones.
TEST(Torture, FindsNothingWhereOneKindOfGracePeriodIsPreferred) {
  for (const bool normal : {true, false}) {
    KernelOptions options;
    options.cpus = 3;
    options.kernel.rcu_normal = normal ? 1 : 0;
    options.kernel.rcu_expedited = 1;  // rcu_normal wins
    options.scenario.duration_ms = 200;
    const ScenarioRun run = RunScenario(options, RunTorture);
    EXPECT_TRUE(run.ok) << run.end;
    EXPECT_EQ(run.counters.failures, 0u)
        << "checks" << run.Values(abi::TraceEvent::kTortureFailure);
    EXPECT_EQ(run.counters.exp_seq_end == run.counters.exp_seq_begin, normal);
    EXPECT_GT(run.counters.gp_seq_end, run.counters.gp_seq_begin);
  }
}

TEST(Torture, SiblingsThatBootLeftOutStayOff) {
  KernelOptions options;
  options.cpus = 6;
  options.threads_per_core = 2;
  options.smt = false;
  options.scenario.duration_ms = 200;
  const ScenarioRun run = RunScenario(options, RunTorture);
  ExpectSuccess(run);
  ExpectBusy(run);
  EXPECT_GT(run.counters.offline_ok, 0u);
  EXPECT_EQ(run.cpus_online, 3u);
}

// A CPU that boot could not bring up would cost a time-out at each try.
TEST(Torture, ACpuThatIsNotThereIsLeftAlone) {
  KernelOptions options;
  options.cpus = 5;
  options.strategy = sequence::StrategyId::kSerial;
  options.fault = {.kind = abi::Fault::kFailStep, .cpu = 3, .value = 58};
  options.scenario.duration_ms = 200;
  const ScenarioRun run = RunScenario(options, RunTorture);
  ExpectSuccess(run);
  EXPECT_GT(run.counters.offline_ok, 0u);
  EXPECT_EQ(run.counters.online_ok, run.counters.online_tried);
  EXPECT_EQ(run.cpus_online, 4u);
}

// Each try of CPU 2 fails: there is one, and the others go on.
TEST(Torture, ACpuThatHasFailedIsNotTriedAgain) {
  KernelOptions options;
  options.cpus = 3;
  options.scenario.duration_ms = 500;
  const ScenarioRun run = RunScenario(options, [](Kernel& kernel) {
    HotplugOf(kernel, CpuNumber(2)).fail = 188;
    HotplugOf(kernel, CpuNumber(2)).fail_always = true;
    RunTorture(kernel);
  });
  EXPECT_TRUE(run.ok) << run.end;
  EXPECT_EQ(run.counters.offline_tried - run.counters.offline_ok, 1u);
  EXPECT_GT(run.counters.offline_ok, 5u);
  EXPECT_EQ(run.counters.failures, 1u);
  EXPECT_EQ(FailuresOf(run, abi::TortureCheck::kHotplug), 1u);
}

// As many threads as the flags let one ask for: on the heap that goes with them (NeedsOf).
TEST(Torture, ManyThreads) {
  KernelOptions options;
  options.cpus = 2;
  options.scenario.readers = 128;
  options.scenario.writers = 128;
  options.scenario.duration_ms = 50;
  ExpectSuccess(RunScenario(options, RunTorture));
}

struct Begun {
  platform::Atomic<uint32_t> count{0};
  uint32_t Now() { return count.Load(std::memory_order_seq_cst); }
};

struct Beginner : CrewMember {
  Begun* begun = nullptr;
};

void Begin(CrewMember& self) {
  static_cast<Beginner&>(self).begun->count.FetchAdd(1, std::memory_order_seq_cst);
}

// Torture's readers run as soon as all threads are there, and not before. Where each makes little
// headway in a slice (an emulated vCPU, off its core for most of it), those that run already would
// leave next to nothing to the thread that makes the others, and it would never be done.
TEST(Crew, OneThatGoesTogetherBeginsWhenAllAreThere) {
  for (const bool together : {false, true}) {
    KernelMachine machine({.cpus = 2});
    machine.Run([together](Kernel& kernel) {
      Crew& crew = MakeCrew(kernel, together);
      auto& begun = *AllocateArray<Begun>(kernel, 1);
      auto* beginners = AllocateArray<Beginner>(kernel, 8);
      for (uint32_t i = 0; i < 8; ++i) {
        beginners[i].begun = &begun;
        beginners[i].body = Begin;
        crew.Spawn(beginners[i], {.name = "beginner/%", .index = i});
        SleepJiffies(5);
        EXPECT_EQ(begun.Now(), together ? 0u : i + 1);
      }
      crew.Start();
      crew.Join();
      EXPECT_EQ(begun.Now(), 8u);
    });
  }
}

// Callbacks that cannot run: a reader sleeps, and no grace period ends meanwhile. For 11 seconds
// that is a slow machine; for longer than anything is waited for (62 s with two CPUs) it is not.
template <uint32_t kMs>
ScenarioRun RunWithHolder() {
  KernelOptions options;
  options.cpus = 2;
  options.scenario.duration_ms = kMs + 3'000;
  return RunScenario(options, [](Kernel& kernel) {
    SpawnThread(kernel, {.name = "holder", .function = [](void*) {
                           rcu::ReadLock();
                           SleepUs(kMs * 1'000);
                           rcu::ReadUnlock();
                         }});
    RunTorture(kernel);
  });
}

TEST(Torture, AFloodOnASlowMachineIsNoFailure) {
  const ScenarioRun run = RunWithHolder<11'000>();
  EXPECT_TRUE(run.ok) << run.end;
  EXPECT_EQ(run.counters.flood_failures, 0u);
}

TEST(Torture, AFloodOfWhichNotOneRunsIsAFailure) {
  const ScenarioRun run = RunWithHolder<66'000>();
  EXPECT_TRUE(run.ok) << run.end;
  EXPECT_EQ(run.counters.flood_failures, 1u);
  EXPECT_EQ(FailuresOf(run, abi::TortureCheck::kFlood), 1u);
}

}  // namespace
}  // namespace sipi
