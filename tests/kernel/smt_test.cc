// SMT switches on the simulated machine: G3's second half, and how many grace periods each approach
// waits for and holds the write lock over.
#include <algorithm>
#include <array>

#include "guest/kernel/hotplug/hotplug.h"
#include "guest/kernel/sched/time.h"
#include "tests/kernel/kernel_machine.h"

namespace sipi {
namespace {

using abi::SmtApproach;
using abi::TraceEvent;

constexpr uint32_t kCpus = 32;
constexpr uint32_t kThreads = 8;
constexpr uint32_t kSiblings = kCpus - kCpus / kThreads;
constexpr uint32_t kAll = 255;

KernelOptions Options(abi::HotplugSteps steps) {
  KernelOptions options;
  options.cpus = kCpus;
  options.threads_per_core = kThreads;
  options.kernel.hotplug_steps = steps;
  options.kernel.boot_expedited = 1;
  options.ring_records = 1 << 14;
  return options;
}

void Settle(Kernel& kernel) {
  for (uint32_t i = 0; i < 1000 && !HotplugSettled(kernel); ++i) SleepJiffies(1);
  EXPECT_TRUE(HotplugSettled(kernel));
}

uint32_t OnlineCpus(Kernel& kernel) {
  uint32_t count = 0;
  for (uint32_t cpu = 0; cpu < kernel.params->cpu_count; ++cpu) {
    count += CpuOnline(kernel, CpuNumber(cpu)) ? 1u : 0u;
  }
  return count;
}

struct Switch {
  std::array<uint32_t, 3> waits = {};  // by GracePeriodKind, as they were served
  uint64_t ticks = 0;
  uint64_t longest_hold_ticks = 0;
};

// The switches of the run, in order.
std::vector<Switch> Switches(KernelMachine& machine) {
  std::vector<abi::TraceRecord> all;
  for (uint32_t cpu = 0; cpu < machine.machine().size(); ++cpu) {
    const std::vector<abi::TraceRecord> one = machine.Trace(cpu);
    all.insert(all.end(), one.begin(), one.end());
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.tsc < b.tsc; });
  std::vector<Switch> switches;
  bool inside = false;
  uint64_t begin = 0, locked = 0;
  for (const abi::TraceRecord& record : all) {
    if (record.event == TraceEvent::kSmtBegin) {
      inside = true;
      begin = record.tsc;
      switches.emplace_back();
    }
    if (!inside) continue;
    Switch& now = switches.back();
    if (record.event == TraceEvent::kSyncEnd) ++now.waits[record.value];
    if (record.event == TraceEvent::kCpusWriteLocked) locked = record.tsc;
    if (record.event == TraceEvent::kCpusWriteUnlock)
      now.longest_hold_ticks = std::max(now.longest_hold_ticks, record.tsc - locked);
    if (record.event == TraceEvent::kSmtEnd) {
      EXPECT_EQ(record.value, 0u) << "CPUs that failed";
      now.ticks = record.tsc - begin;
      inside = false;
    }
  }
  return switches;
}

// All approaches in turn, off and on.
std::vector<Switch> RunAll(abi::HotplugSteps steps) {
  KernelMachine machine(Options(steps));
  machine.Run([](Kernel& kernel) {
    for (uint32_t approach = 0; approach < abi::kSmtApproaches; ++approach) {
      Settle(kernel);
      EXPECT_TRUE(SmtSwitch(kernel, 1, static_cast<SmtApproach>(approach)));
      EXPECT_EQ(OnlineCpus(kernel), kCpus / kThreads);
      EXPECT_EQ(SmtControl(kernel), SmtState::kOff);
      Settle(kernel);
      EXPECT_TRUE(SmtSwitch(kernel, kAll, static_cast<SmtApproach>(approach)));
      EXPECT_EQ(OnlineCpus(kernel), kCpus);
      EXPECT_EQ(SmtControl(kernel), SmtState::kOn);
    }
  });
  return Switches(machine);
}

using Waits = std::array<uint32_t, 3>;

// x86: off of n threads n + 1, on of n threads 1. Where grace periods are short the lock may fall
// idle between two operations, and then waits once more: hence the bounds.
TEST(Smt, GracePeriodsOfEachApproachOnX86) {
  const std::vector<Switch> all = RunAll(abi::HotplugSteps::kX86);
  ASSERT_EQ(all.size(), 2 * abi::kSmtApproaches);
  const auto off = [&](SmtApproach a) { return all[2 * static_cast<size_t>(a)]; };
  const auto on = [&](SmtApproach a) { return all[2 * static_cast<size_t>(a) + 1]; };
  const uint32_t n = kSiblings;
  for (const SmtApproach normal : {SmtApproach::kNone, SmtApproach::kRcuSync,
                                   SmtApproach::kWakeFromGp, SmtApproach::kWriteLock}) {
    EXPECT_EQ(off(normal).waits, (Waits{n + 1, 0, 0})) << static_cast<int>(normal);
    EXPECT_EQ(on(normal).waits, (Waits{1, 0, 0})) << static_cast<int>(normal);
  }
  for (const SmtApproach expedited :
       {SmtApproach::kExpedite, SmtApproach::kPerCpu, SmtApproach::kHotplugCalls}) {
    EXPECT_EQ(off(expedited).waits, (Waits{0, n + 1, 0})) << static_cast<int>(expedited);
    EXPECT_EQ(on(expedited).waits, (Waits{0, 1, 0})) << static_cast<int>(expedited);
    EXPECT_LT(off(expedited).ticks, off(SmtApproach::kNone).ticks / 4);
  }
  // Held once for the whole switch, and that long.
  EXPECT_GT(off(SmtApproach::kWriteLock).longest_hold_ticks,
            10 * off(SmtApproach::kNone).longest_hold_ticks);
  EXPECT_LT(off(SmtApproach::kWakeFromGp).ticks, off(SmtApproach::kNone).ticks);
}

// pseries: each CPU waits once more in either direction, in the driver, which only the switch's own
// expediting reaches.
TEST(Smt, GracePeriodsOfEachApproachOnPseries) {
  const std::vector<Switch> all = RunAll(abi::HotplugSteps::kPseries);
  ASSERT_EQ(all.size(), 2 * abi::kSmtApproaches);
  const auto off = [&](SmtApproach a) { return all[2 * static_cast<size_t>(a)]; };
  const auto on = [&](SmtApproach a) { return all[2 * static_cast<size_t>(a) + 1]; };
  const uint32_t n = kSiblings;
  EXPECT_EQ(off(SmtApproach::kNone).waits, (Waits{2 * n + 1, 0, 0}));
  EXPECT_EQ(on(SmtApproach::kNone).waits, (Waits{n + 1, 0, 0}));
  EXPECT_EQ(off(SmtApproach::kExpedite).waits, (Waits{0, 2 * n + 1, 0}));
  EXPECT_EQ(on(SmtApproach::kExpedite).waits, (Waits{0, n + 1, 0}));
  EXPECT_EQ(off(SmtApproach::kHotplugCalls).waits, (Waits{n, n + 1, 0}));
  EXPECT_EQ(on(SmtApproach::kHotplugCalls).waits, (Waits{n, 1, 0}));
}

TEST(Smt, G3PrimariesOnly) {
  KernelOptions options = Options(abi::HotplugSteps::kX86);
  options.threads_per_core = 2;
  options.strategy = sequence::StrategyId::kPrimaryFirst;
  KernelMachine machine(options);
  machine.Run([](Kernel& kernel) {
    EXPECT_EQ(SmtControl(kernel), SmtState::kOn);
    EXPECT_TRUE(SmtSwitch(kernel, 1, SmtApproach::kExpedite));
    EXPECT_EQ(OnlineCpus(kernel), 16u);
    EXPECT_EQ(SmtControl(kernel), SmtState::kOff);
    for (uint32_t cpu = 0; cpu < kCpus; ++cpu) {
      EXPECT_EQ(CpuOnline(kernel, CpuNumber(cpu)), cpu % 2 == 0);
      EXPECT_EQ(CpuBootable(kernel, CpuNumber(cpu)), cpu % 2 == 0);
    }
    EXPECT_EQ(CpuUp(kernel, CpuNumber(3), abi::CpuhpState::kOnline), Error::kNotBootable);
    // A core that is off as a whole stays off when SMT comes back.
    EXPECT_EQ(CpuDown(kernel, CpuNumber(4), abi::CpuhpState::kOffline), Error::kNone);
    EXPECT_TRUE(SmtSwitch(kernel, kAll, SmtApproach::kExpedite));
    EXPECT_EQ(OnlineCpus(kernel), 30u);
    EXPECT_FALSE(CpuOnline(kernel, CpuNumber(5)));
  });
}

TEST(Smt, SomeThreadsStay) {
  KernelMachine machine(Options(abi::HotplugSteps::kX86));
  machine.Run([](Kernel& kernel) {
    for (const uint32_t threads : {4u, 2u, 6u, 8u, 3u, 1u, 8u}) {
      EXPECT_TRUE(SmtSwitch(kernel, threads, SmtApproach::kExpedite));
      EXPECT_EQ(OnlineCpus(kernel), kCpus / kThreads * threads);
    }
  });
}

TEST(Smt, AMachineWithoutSiblingsHasNothingToSwitch) {
  KernelOptions options;
  options.cpus = 4;
  KernelMachine machine(options);
  machine.Run([](Kernel& kernel) {
    EXPECT_EQ(SmtControl(kernel), SmtState::kNotSupported);
    EXPECT_TRUE(SmtSwitch(kernel, 1, SmtApproach::kNone));
    EXPECT_EQ(OnlineCpus(kernel), 4u);
  });
}

// Linux's nosmt: what boot left out stays out until SMT control lets it come.
TEST(Smt, SiblingsThatBootLeftOutMayNotCome) {
  KernelOptions options;
  options.cpus = 6;
  options.threads_per_core = 3;
  options.smt = false;
  KernelMachine machine(options);
  machine.Run([](Kernel& kernel) {
    EXPECT_EQ(SmtControl(kernel), SmtState::kOff);
    EXPECT_EQ(OnlineCpus(kernel), 2u);
    EXPECT_EQ(CpuUp(kernel, CpuNumber(1), abi::CpuhpState::kOnline), Error::kNotBootable);
    EXPECT_EQ(OnlineCpus(kernel), 2u);
    EXPECT_TRUE(SmtSwitch(kernel, kAll, SmtApproach::kNone));
    EXPECT_EQ(SmtControl(kernel), SmtState::kOn);
    EXPECT_EQ(OnlineCpus(kernel), 6u);
  });
}

}  // namespace
}  // namespace sipi
