// Case G7: hotplug callbacks that wait for an expedited grace period.
#include <gtest/gtest.h>

#include "guest/kernel/hotplug/hotplug.h"
#include "guest/kernel/hotplug/state.h"
#include "guest/kernel/rcu/rcu.h"
#include "guest/kernel/sched/time.h"
#include "tests/kernel/kernel_machine.h"

namespace sipi {
namespace {

KernelOptions WithCpus(uint32_t cpus) {
  KernelOptions options;
  options.cpus = cpus;
  return options;
}

// A hotplug callback that waits for an expedited grace period, with the hotplug lock held for
// writing, contended or not; with another expedited grace period in its way or not.
constexpr size_t kMaxSteps = 64;
struct Steps {
  CpuhpStep steps[kMaxSteps];
  CpuhpTable table;
};

Error WaitExpedited(PerCpu& self, CpuNumber) {
  rcu::SynchronizeExpedited(*self.kernel);
  return Error::kNone;
}

// The kernel's table with one more step, where its state's number belongs.
void PlugIn(Kernel& kernel, Section section, const CpuhpStep& extra) {
  Steps& plugged = *AllocateArray<Steps>(kernel, 1);
  size_t at = 0;
  for (size_t s = 0; s < kSections; ++s) {
    plugged.table.begin[s] = plugged.steps + at;
    bool due = s == static_cast<size_t>(section);
    for (const CpuhpStep& step : kernel.hotplug->steps->Steps(static_cast<Section>(s))) {
      if (due && step.state > extra.state) plugged.steps[at++] = extra;
      due = due && step.state <= extra.state;
      plugged.steps[at++] = step;
    }
  }
  plugged.table.begin[kSections] = plugged.steps + at;
  kernel.hotplug->steps = &plugged.table;
}

struct Contender {
  Kernel* kernel = nullptr;
  Completion done;
};

void TakeReadLock(void* argument) {
  auto& contender = *static_cast<Contender*>(argument);
  for (int i = 0; i < 5; ++i) {
    CpusReadLock(*contender.kernel);
    SleepUs(300);
    CpusReadUnlock(*contender.kernel);
  }
  contender.done.Complete(*contender.kernel);
}

void ExpediteOften(void* argument) {
  auto& contender = *static_cast<Contender*>(argument);
  for (int i = 0; i < 20; ++i) {
    rcu::SynchronizeExpedited(*contender.kernel);
    SleepUs(100);
  }
  contender.done.Complete(*contender.kernel);
}

void OffAndOn(Kernel& kernel, bool contended) {
  PlugIn(kernel, Section::kPrepare,
         {static_cast<abi::CpuhpState>(2), Section::kPrepare, true, WaitExpedited, WaitExpedited});
  Contender* contenders = AllocateArray<Contender>(kernel, 2);
  for (int i = 0; i < 2 && contended; ++i) {
    contenders[i].kernel = &kernel;
    SpawnThread(kernel, {.name = "contender",
                         .function = i == 0 ? TakeReadLock : ExpediteOften,
                         .argument = &contenders[i]});
  }
  const uint64_t before = rcu::ExpSeq(kernel);
  EXPECT_EQ(CpuDown(kernel, CpuNumber(2), abi::CpuhpState::kOffline), Error::kNone);
  EXPECT_EQ(CpuUp(kernel, CpuNumber(2), abi::CpuhpState::kOnline), Error::kNone);
  EXPECT_GE(rcu::ExpSeq(kernel) - before, 2u << 2);
  for (int i = 0; i < 2 && contended; ++i) contenders[i].done.Wait();
}

TEST(Expedited, AHotplugCallbackThatWaitsForOneCompletes) {
  ForSeeds(30, WithCpus(3), [](Kernel& kernel) { OffAndOn(kernel, false); });
  ForSeeds(30, WithCpus(3), [](Kernel& kernel) { OffAndOn(kernel, true); });
}

TEST(Expedited, AHotplugCallbackCompletesAsANormalOneWhereTheyAreForbidden) {
  KernelOptions options = WithCpus(3);
  options.kernel.rcu_normal = 1;
  KernelMachine machine(options);
  machine.Run([](Kernel& kernel) {
    const uint64_t before = rcu::ExpSeq(kernel);
    PlugIn(
        kernel, Section::kPrepare,
        {static_cast<abi::CpuhpState>(2), Section::kPrepare, true, WaitExpedited, WaitExpedited});
    EXPECT_EQ(CpuDown(kernel, CpuNumber(2), abi::CpuhpState::kOffline), Error::kNone);
    EXPECT_EQ(CpuUp(kernel, CpuNumber(2), abi::CpuhpState::kOnline), Error::kNone);
    EXPECT_EQ(rcu::ExpSeq(kernel), before);
  });
}

}  // namespace
}  // namespace sipi
