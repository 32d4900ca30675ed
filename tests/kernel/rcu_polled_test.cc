// Cookies where grace periods of both kinds overlap, and where none is needed.
#include <utility>

#include "guest/kernel/apic.h"
#include "guest/kernel/calibrate.h"
#include "guest/kernel/rcu/exp.h"
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

// What the caller has stored is there for all CPUs before a counter is looked at. Else a grace
// period that begins after the look could let a reader through that begins later still and finds
// what was there before the store. `published` is read past the CPU's own store buffer, as another
// CPU reads it.
TEST(Cookies, AreTakenBehindTheCallersStores) {
  KernelOptions options = RcuOptions(2, kRcuModes[0]);
  options.chaos.on = true;
  options.chaos.store_buffer = true;
  options.chaos.schedule = sim::Schedule::kChosen;  // nothing leaves the buffer by itself
  KernelMachine machine(options);
  machine.Run([](Kernel& kernel) {
    auto& published = *AllocateArray<uint32_t>(kernel, 1);
    const rcu::Cookie old = rcu::GetState(kernel);
    using Look = void (*)(Kernel&, rcu::Cookie);
    const std::pair<const char*, Look> looks[] = {
        {"a short cookie", [](Kernel& k, rcu::Cookie) { (void)rcu::GetState(k); }},
        {"a full cookie", [](Kernel& k, rcu::Cookie) { (void)rcu::GetStateFull(k); }},
        {"an expedited one",
         [](Kernel& k, rcu::Cookie) { (void)rcu::SnapExpSequence(rcu::StateOf(k)); }},
        {"the question", [](Kernel& k, rcu::Cookie cookie) { (void)rcu::Poll(k, cookie); }},
    };
    for (const auto& [name, look] : looks) {
      IrqGuard irq;  // an interrupt empties the buffer
      platform::AtomicRef<uint32_t>(published).Store(0, std::memory_order_seq_cst);
      platform::AtomicRef<uint32_t>(published).Store(1, std::memory_order_release);
      EXPECT_EQ(published, 0u) << name << ": the store is not buffered, so nothing is tested";
      look(kernel, old);
      EXPECT_EQ(published, 1u) << name;
    }
  });
}

}  // namespace
}  // namespace sipi
