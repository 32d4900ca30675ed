// What counts as a reader without being one: code with preemption disabled, an unlock within it;
// and what does not count: a report for a grace period that is over.
#include "tests/kernel/rcu_held.h"

namespace sipi {
namespace {

struct Section {
  Completion in;
  Completion out;
  platform::Atomic<uint32_t> inside{0};
  bool unlocks = false;  // a reader ends within it
};

void WithoutPreemption(void* argument) {
  auto& section = *static_cast<Section*>(argument);
  Kernel& kernel = *CurrentThread()->kernel;
  const auto half_jiffy_us = static_cast<uint32_t>(JiffyNs(kernel) / 2000);
  section.in.Complete(kernel);
  SleepUs(100);
  PreemptDisable();
  section.inside.Store(1, std::memory_order_seq_cst);
  if (section.unlocks) rcu::ReadLock();
  for (uint32_t i = 0; i < 10; ++i) platform::DelayUs(half_jiffy_us);
  if (section.unlocks) {
    rcu::ReadUnlock();
    for (uint32_t i = 0; i < 20; ++i) platform::DelayUs(half_jiffy_us);
  }
  section.inside.Store(0, std::memory_order_seq_cst);
  PreemptEnable();
  section.out.Complete(kernel);
}

void ExpectWaitedFor(bool unlocks, void (*wait)(Kernel&)) {
  for (const RcuMode& mode : kRcuModes) {
    SCOPED_TRACE(mode.name);
    ForSeeds(8, RcuOptions(3, mode), [=](Kernel& kernel) {
      auto& section = *AllocateArray<Section>(kernel, 1);
      section.unlocks = unlocks;
      SpawnThread(
          kernel,
          {.name = "section", .function = WithoutPreemption, .argument = &section, .cpu = 1});
      section.in.Wait();
      while (section.inside.Load(std::memory_order_seq_cst) == 0) SleepUs(50);
      wait(kernel);
      EXPECT_EQ(section.inside.Load(std::memory_order_seq_cst), 0u);
      section.out.Wait();
    });
  }
}

void Normal(Kernel& kernel) { rcu::SynchronizeNormal(rcu::StateOf(kernel)); }

TEST(PreemptionDisabled, IsWaitedForByANormalGracePeriod) { ExpectWaitedFor(false, Normal); }
TEST(PreemptionDisabled, IsWaitedForByAnExpeditedOne) {
  ExpectWaitedFor(false, rcu::SynchronizeExpedited);
}
TEST(PreemptionDisabled, GoesOnWhereAReaderEndsInIt) { ExpectWaitedFor(true, Normal); }
TEST(PreemptionDisabled, GoesOnForAnExpeditedOneToo) {
  ExpectWaitedFor(true, rcu::SynchronizeExpedited);
}

// A CPU that was quiescent in the last grace period comes to its report when its leaf has begun the
// next: set up by hand, since a whole beginning has to fit between two looks. Nothing else runs.
TEST(Reports, OneOfALaterGracePeriodIsNotTakenForIt) {
  KernelMachine machine(RcuOptions(1, kRcuModes[0]));
  machine.Run([](Kernel&) {
    SleepJiffies(100);
    const IrqGuard irq;
    PerCpu& self = platform::ThisCpu();
    rcu::Data& data = rcu::DataOf(self);
    rcu::Node& leaf = *data.leaf;
    const uint64_t before = leaf.gp_seq.Load(std::memory_order_seq_cst);
    ASSERT_EQ(rcu::SeqState(before), 0u);
    data.gp_seq = before;
    data.cpu_no_qs_norm = false;
    data.core_needs_qs = true;
    leaf.gp_seq.Store(rcu::SeqStarted(before), std::memory_order_seq_cst);
    leaf.qsmask.Store(data.grpmask, std::memory_order_seq_cst);
    rcu::ReportQsCpu(self);
    EXPECT_EQ(leaf.qsmask.Load(std::memory_order_seq_cst), data.grpmask);
    EXPECT_TRUE(data.cpu_no_qs_norm);
    // The same one's counts.
    data.gp_seq = rcu::SeqStarted(before);
    data.cpu_no_qs_norm = false;
    rcu::ReportQsCpu(self);
    EXPECT_EQ(leaf.qsmask.Load(std::memory_order_seq_cst), 0u);
    leaf.gp_seq.Store(before, std::memory_order_seq_cst);
    data.gp_seq = before;
  });
}

}  // namespace
}  // namespace sipi
