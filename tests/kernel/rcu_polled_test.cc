// Cookies where grace periods of both kinds overlap, and where none is needed.
#include "guest/kernel/apic.h"
#include "guest/kernel/calibrate.h"
#include "guest/kernel/smpboot.h"
#include "tests/kernel/rcu_held.h"

namespace sipi {
namespace {

// Grace periods of either kind that have ended, as short cookies count them.
uint64_t PolledGps(Kernel& kernel) {
  const uint64_t polled = rcu::StateOf(kernel).gp_seq_polled.Load(std::memory_order_seq_cst);
  return rcu::SeqCounter(polled - rcu::kInitialGpSeq);
}

// Two expedited ones, the first of which ends the number that a normal one joined, and a poller in
// the second. The normal one that comes next joins the second's number and is overtaken, so that it
// ends none: that which the poller waits for has to be asked for too.
TEST(StartPoll, AsksForEnoughWhereTwoExpeditedOnesOverlap) {
  KernelMachine machine(RcuOptions(6, kRcuModes[0]));
  machine.Run([](Kernel& kernel) {
    SleepJiffies(100);  // what boot has asked for is over
    const uint64_t before = PolledGps(kernel);
    Held& a = HoldReader(kernel, 1);
    Completion& first = StartWaiting(kernel, WaitExpedited);
    Held& b = HoldReader(kernel, 2);
    Completion& normal = StartWaiting(kernel, WaitNormally);
    a.go.Complete(kernel);
    first.Wait();
    EXPECT_EQ(PolledGps(kernel), before + 1);
    Held& c = HoldReader(kernel, 3);
    Completion& second = StartWaiting(kernel, WaitExpedited);
    const rcu::Cookie cookie = rcu::StartPoll(kernel);
    Held& d = HoldReader(kernel, 4);
    b.go.Complete(kernel);
    normal.Wait();
    EXPECT_EQ(PolledGps(kernel), before + 1) << "it ended no number";
    SleepJiffies(10);
    c.go.Complete(kernel);
    second.Wait();
    EXPECT_EQ(PolledGps(kernel), before + 2);
    d.go.Complete(kernel);
    SleepJiffies(100);
    EXPECT_TRUE(rcu::Poll(kernel, cookie)) << "nobody runs the grace period that was asked for";
  });
}

// Where only an expedited one runs, the normal one that the poller asks for is overtaken likewise.
TEST(StartPoll, AsksForEnoughWhileAnExpeditedOneRuns) {
  KernelMachine machine(RcuOptions(4, kRcuModes[0]));
  machine.Run([](Kernel& kernel) {
    SleepJiffies(100);
    Held& a = HoldReader(kernel, 1);
    Completion& expedited = StartWaiting(kernel, WaitExpedited);
    const rcu::Cookie cookie = rcu::StartPoll(kernel);
    SleepJiffies(10);  // the normal one runs, and waits for a second reader
    Held& b = HoldReader(kernel, 2);
    a.go.Complete(kernel);
    expedited.Wait();
    b.go.Complete(kernel);
    SleepJiffies(100);
    EXPECT_TRUE(rcu::Poll(kernel, cookie));
  });
}

// A poller that comes while a normal grace period runs alone asks for the next one, and no more.
TEST(StartPoll, AsksForNoMoreThanItNeeds) {
  KernelMachine machine(RcuOptions(4, kRcuModes[0]));
  machine.Run([](Kernel& kernel) {
    SleepJiffies(100);
    const uint64_t before = rcu::GpSeq(kernel);
    Held& a = HoldReader(kernel, 1);
    Completion& normal = StartWaiting(kernel, WaitNormally);
    const rcu::Cookie cookie = rcu::StartPoll(kernel);
    a.go.Complete(kernel);
    normal.Wait();
    SleepJiffies(100);
    EXPECT_TRUE(rcu::Poll(kernel, cookie));
    EXPECT_EQ(rcu::SeqCounter(rcu::GpSeq(kernel) - before), 2u);
  });
}

// From the boot CPU's first instruction on: RCU, and no scheduler at all.
void BootWithoutScheduler(Kernel& kernel) {
  PerCpu& self = kernel.percpu(kBootCpu);
  InitPerCpu(kernel, self, kBootCpu);
  EnableLocalApic();
  kernel.slot(kBootCpu).online = 1;
  kernel.tsc_deadline = platform::HasTscDeadline();
  kernel.strategy = kernel.params->strategy;
  CalibrateBootCpu(self);
  rcu::Init(kernel);
  WaitAndLookAtCookies(kernel, rcu::SynchronizeExpedited);
  WaitAndLookAtCookies(kernel, rcu::Synchronize);
  kernel.result->status = static_cast<uint32_t>(abi::GuestStatus::kDone);
  platform::Exit(0);
}

// However the vacuous grace periods come about: expedited, by rcu_expedited, or normal.
TEST(Cookies, AreDoneByVacuousGracePeriods) {
  for (const uint8_t expedited : {uint8_t{0}, uint8_t{1}}) {
    KernelOptions options = RcuOptions(2, kRcuModes[0]);
    options.kernel.boot_expedited = expedited;
    KernelMachine machine(options);
    machine.RunBoot(BootWithoutScheduler);
  }
}

}  // namespace
}  // namespace sipi
