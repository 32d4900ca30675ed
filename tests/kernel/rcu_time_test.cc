// What a grace period costs: in virtual time, as Linux's does; and that stalls are named.
#include "guest/kernel/rcu/read_side.h"
#include "guest/kernel/rcu/state.h"
#include "guest/kernel/sched/time.h"
#include "guest/kernel/sched/wait.h"
#include "tests/kernel/rcu_fixture.h"

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

struct Holder {
  Completion in;
  Completion go;
  Completion out;
};

TEST(Stall, NamesTheReaderThatWasSwitchedOut) {
  KernelOptions options = RcuOptions(3, kRcuModes[0]);
  options.kernel.rcu_stall_ms = 100;
  KernelMachine machine(options);
  machine.Run([](Kernel& kernel) {
    auto& holder = *AllocateArray<Holder>(kernel, 1);
    const auto hold = [](void* argument) {
      auto& own = *static_cast<Holder*>(argument);
      rcu::ReadLock();
      own.in.Complete(*CurrentThread()->kernel);
      own.go.Wait();
      rcu::ReadUnlock();
      own.out.Complete(*CurrentThread()->kernel);
    };
    SpawnThread(kernel, {.name = "holder", .function = hold, .argument = &holder, .cpu = 2});
    holder.in.Wait();
    const auto synchronize = [](void* argument) {
      rcu::SynchronizeNormal(rcu::StateOf(*CurrentThread()->kernel));
      static_cast<Holder*>(argument)->out.Complete(*CurrentThread()->kernel);
    };
    SpawnThread(kernel, {.name = "waiter", .function = synchronize, .argument = &holder});
    SleepUs(250'000);
    holder.go.Complete(kernel);
    holder.out.Wait();
    holder.out.Wait();
  });
  bool named = false;
  for (uint32_t cpu = 0; cpu < 3; ++cpu) {
    for (const abi::TraceRecord& record : machine.Trace(cpu)) {
      if (record.event != abi::TraceEvent::kRcuStall) continue;
      EXPECT_EQ(record.target, 2u);
      EXPECT_GE(record.value, 100u);
      named = true;
    }
  }
  EXPECT_TRUE(named);
}

TEST(Stall, NamesTheCpuThatIsNeverQuiescent) {
  KernelOptions options =
      RcuOptions(3, {"", abi::RcuFlavour::kNonPreemptible, abi::Preemption::kNone});
  options.kernel.rcu_stall_ms = 100;
  KernelMachine machine(options);
  machine.Run([](Kernel& kernel) {
    auto& holder = *AllocateArray<Holder>(kernel, 1);
    const auto spin = [](void* argument) {
      auto& own = *static_cast<Holder*>(argument);
      own.in.Complete(*CurrentThread()->kernel);
      platform::DelayUs(250'000);
      own.out.Complete(*CurrentThread()->kernel);
    };
    SpawnThread(kernel, {.name = "spinner", .function = spin, .argument = &holder, .cpu = 1});
    holder.in.Wait();
    rcu::SynchronizeNormal(rcu::StateOf(kernel));
    holder.out.Wait();
  });
  EXPECT_GE(machine.CountOf(abi::TraceEvent::kRcuStall), 1u);
  for (uint32_t cpu = 0; cpu < 3; ++cpu) {
    for (const abi::TraceRecord& record : machine.Trace(cpu)) {
      if (record.event == abi::TraceEvent::kRcuStall) {
        EXPECT_EQ(record.target, 1u);
      }
    }
  }
}

}  // namespace
}  // namespace sipi
