// What a grace period costs: in virtual time, as Linux's does; and that stalls are named.
#include <set>

#include "tests/kernel/rcu_held.h"

namespace sipi {
namespace {

// On a quiet machine, from one grace period's end to the next one's: jiffies.
uint64_t QuietJiffies(const KernelOptions& options) {
  uint64_t jiffies = 0;
  KernelMachine machine(options);
  machine.Run([&](Kernel& kernel) {
    rcu::State& state = rcu::StateOf(kernel);
    rcu::SynchronizeNormal(state);
    const uint64_t begin_ns = platform::NowNs();
    constexpr uint32_t kTimes = 4;
    for (uint32_t i = 0; i < kTimes; ++i) rcu::SynchronizeNormal(state);
    const uint64_t jiffy_ns = JiffyNs(kernel);
    jiffies = ((platform::NowNs() - begin_ns) / kTimes + jiffy_ns / 2) / jiffy_ns;
  });
  return jiffies;
}

TEST(QuietGracePeriod, TakesTwoJiffiesWhereTheKthreadWakes) {
  KernelOptions options = RcuOptions(4, kRcuModes[0]);
  options.kernel.rcu_normal_wake_from_gp = 1;
  EXPECT_EQ(QuietJiffies(options), 2u);
  options.kernel.rcu_flavour = abi::RcuFlavour::kNonPreemptible;
  EXPECT_EQ(QuietJiffies(options), 2u);
}

TEST(QuietGracePeriod, WaitsScaleWithHzAndCpus) {
  struct {
    uint32_t hz, cpus, jiffies;
  } const kCases[] = {{100, 4, 1}, {250, 4, 1}, {300, 4, 2}, {1000, 4, 3}, {250, 256, 2}};
  for (const auto& each : kCases) {
    KernelOptions options = RcuOptions(each.cpus, kRcuModes[0]);
    options.kernel.hz = each.hz;
    options.ring_records = 1024;
    KernelMachine machine(options);
    machine.Run([&](Kernel& kernel) {
      EXPECT_EQ(kernel.rcu->jiffies_till_first_fqs, each.jiffies) << each.hz << " " << each.cpus;
      EXPECT_EQ(kernel.rcu->jiffies_till_next_fqs, each.jiffies);
    });
  }
}

TEST(QuietGracePeriod, Of1920Cpus) {
  KernelOptions options = RcuOptions(1920, kRcuModes[0]);
  options.kernel.rcu_normal_wake_from_gp = 1;
  options.ring_records = 256;
  options.heap_bytes = uint64_t{256} << 20;
  EXPECT_EQ(QuietJiffies(options), 9u);  // the first scan comes after 1 + 1920 / 256, and one begun
}

TEST(QuietGracePeriod, KnobsSetTheWaits) {
  KernelOptions options = RcuOptions(2, kRcuModes[0]);
  options.kernel.rcu_normal_wake_from_gp = 1;
  options.kernel.jiffies_till_first_fqs = 0;
  const uint64_t none = QuietJiffies(options);
  options.kernel.jiffies_till_first_fqs = 3;
  const uint64_t three = QuietJiffies(options);
  EXPECT_LT(none, 2u);  // a second scan is needed where the caller was not idle yet
  EXPECT_EQ(three, 4u);
}

// An idle machine with callbacks on nobody has no tick and no scans.
TEST(QuietGracePeriod, NoneRunsWhereNobodyAsks) {
  KernelMachine machine(RcuOptions(4, kRcuModes[0]));
  machine.Run([](Kernel& kernel) {
    rcu::Barrier(kernel);
    SleepJiffies(20);  // what boot has asked for is over
    const uint64_t before = rcu::GpSeq(kernel);
    SleepJiffies(100);
    EXPECT_EQ(rcu::GpSeq(kernel), before);
  });
}

// The targets of such an event, whose value is at least the stall's time.
std::set<uint32_t> TargetsOf(KernelMachine& machine, uint32_t cpus, abi::TraceEvent event) {
  std::set<uint32_t> targets;
  for (uint32_t cpu = 0; cpu < cpus; ++cpu) {
    for (const abi::TraceRecord& record : machine.Trace(cpu)) {
      if (record.event != event) continue;
      EXPECT_GE(record.value, 100u);
      targets.insert(record.target);
    }
  }
  return targets;
}
// The CPUs that stalls were reported of, and those on which the kthread was said to be starved.
std::set<uint32_t> StalledCpus(KernelMachine& machine, uint32_t cpus) {
  return TargetsOf(machine, cpus, abi::TraceEvent::kRcuStall);
}
std::set<uint32_t> StarvedCpus(KernelMachine& machine, uint32_t cpus) {
  return TargetsOf(machine, cpus, abi::TraceEvent::kGpStarved);
}

// Readers on two leaves of a tree, and a grace period of either kind that waits for both.
void ExpectBothNamed(void (*wait)(void*)) {
  KernelOptions options = RcuOptions(6, kRcuModes[0]);
  options.kernel.rcu_stall_ms = 100;
  options.kernel.rcu_fanout_leaf = 2;
  KernelMachine machine(options);
  machine.Run([wait](Kernel& kernel) {
    Held& one = HoldReader(kernel, 2);
    Held& other = HoldReader(kernel, 5);
    Completion& over = StartWaiting(kernel, wait);
    SleepUs(250'000);
    one.go.Complete(kernel);
    other.go.Complete(kernel);
    over.Wait();
  });
  EXPECT_EQ(StalledCpus(machine, 6), (std::set<uint32_t>{2, 5}));
  EXPECT_TRUE(StarvedCpus(machine, 6).empty());
}

TEST(Stall, NamesTheReadersThatWereSwitchedOut) { ExpectBothNamed(WaitNormally); }
TEST(Stall, NamesThoseOfAnExpeditedOneToo) { ExpectBothNamed(WaitExpedited); }

TEST(Stall, NamesTheCpuThatIsNeverQuiescent) {
  KernelOptions options =
      RcuOptions(3, {"", abi::RcuFlavour::kNonPreemptible, abi::Preemption::kNone});
  options.kernel.rcu_stall_ms = 100;
  KernelMachine machine(options);
  machine.Run([](Kernel& kernel) {
    auto& holder = *AllocateArray<Held>(kernel, 1);
    const auto spin = [](void* argument) {
      auto& own = *static_cast<Held*>(argument);
      own.in.Complete(*CurrentThread()->kernel);
      platform::DelayUs(250'000);
      own.out.Complete(*CurrentThread()->kernel);
    };
    SpawnThread(kernel, {.name = "spinner", .function = spin, .argument = &holder, .cpu = 1});
    holder.in.Wait();
    rcu::SynchronizeNormal(rcu::StateOf(kernel));
    holder.out.Wait();
  });
  EXPECT_EQ(StalledCpus(machine, 3), std::set<uint32_t>{1});
}

// Nobody else may run on the kthread's CPU for a while. `in`: it begins, `out`: it is over.
void KeepTheKthreadOut(void* argument) {
  auto& held = *static_cast<Held*>(argument);
  Kernel& kernel = *CurrentThread()->kernel;
  held.in.Complete(kernel);
  {
    const PreemptGuard guard;
    platform::DelayUs(600'000);  // the second look comes after 4 times 100 ms
  }
  held.out.Complete(kernel);
}

// The CPUs on which the grace-period kthread is said to be starved, where it cannot run on CPU 1.
std::set<uint32_t> StarvedOn(bool grace_period_runs) {
  KernelOptions options = RcuOptions(3, kRcuModes[0]);
  options.kernel.rcu_stall_ms = 100;
  KernelMachine machine(options);
  machine.Run([grace_period_runs](Kernel& kernel) {
    rcu::Barrier(kernel);
    SleepJiffies(20);  // what boot has asked for is over
    EXPECT_TRUE(SetAffinity(*rcu::StateOf(kernel).gp_thread, 1));
    Held& reader = HoldReader(kernel, 2);
    Completion* over = grace_period_runs ? &StartWaiting(kernel, WaitNormally) : nullptr;
    auto& keeper = *AllocateArray<Held>(kernel, 1);
    SpawnThread(kernel,
                {.name = "keeper", .function = KeepTheKthreadOut, .argument = &keeper, .cpu = 1});
    keeper.in.Wait();
    if (over == nullptr) over = &StartWaiting(kernel, WaitNormally);
    reader.go.Complete(kernel);
    keeper.out.Wait();
    over->Wait();
  });
  return StarvedCpus(machine, 3);
}

// Linux looks at the tick, too: who looks must not be who does not run.
TEST(Stall, NamesTheCpuOnWhichTheKthreadDoesNotRun) {
  EXPECT_EQ(StarvedOn(true), std::set<uint32_t>{1});
}
TEST(Stall, NamesItWhereNoGracePeriodBegins) { EXPECT_EQ(StarvedOn(false), std::set<uint32_t>{1}); }

// From 64 waiters in flight on, callbacks are used; and when all have been woken, the list again.
TEST(Waiters, FromSixtyFourOnByCallbacks) {
  KernelOptions options = RcuOptions(3, kRcuModes[0]);
  options.kernel.rcu_normal_wake_from_gp = 1;
  KernelMachine machine(options);
  machine.Run([](Kernel& kernel) {
    constexpr uint32_t kLatch = 64;
    rcu::State& state = rcu::StateOf(kernel);
    const auto callbacks = [&kernel] {
      uint32_t sum = 0;
      for (uint32_t i = 0; i < 3; ++i) {
        sum += rcu::DataOf(kernel, CpuNumber(i)).callback_count.Load(std::memory_order_seq_cst);
      }
      return sum;
    };
    const auto latched = [&state] { return state.sync_latched.Load(std::memory_order_seq_cst); };
    Held& held = HoldReader(kernel, 1);
    const uint32_t before = callbacks();
    Completion* waiting[kLatch + 1];
    for (uint32_t i = 0; i < kLatch - 1; ++i) waiting[i] = &StartWaiting(kernel, WaitNormally);
    EXPECT_EQ(latched(), 0u);
    waiting[kLatch - 1] = &StartWaiting(kernel, WaitNormally);
    EXPECT_EQ(latched(), 1u);
    EXPECT_EQ(callbacks(), before);
    waiting[kLatch] = &StartWaiting(kernel, WaitNormally);
    EXPECT_EQ(callbacks(), before + 1);
    held.go.Complete(kernel);
    for (Completion* each : waiting) each->Wait();
    EXPECT_EQ(latched(), 0u);
  });
}

}  // namespace
}  // namespace sipi
