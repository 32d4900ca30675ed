// CPUs that do not die in time, and the thread that took one down.
#include "guest/kernel/hotplug/hotplug.h"
#include "guest/kernel/hotplug/state.h"
#include "guest/kernel/rcu/internal.h"
#include "guest/kernel/sched/time.h"
#include "guest/scenario/plugged_step.h"
#include "tests/kernel/kernel_machine.h"

namespace sipi {
namespace {

using abi::CpuhpState;

constexpr CpuNumber kCpu2{2};
constexpr CpuNumber kCpu3{3};
constexpr uint32_t kHandshakeMs = 20;

KernelOptions Options() {
  KernelOptions options;
  options.cpus = 4;
  options.knobs.handshake_timeout_ms = kHandshakeMs;
  return options;
}

// Longer than two handshakes may last.
Error Hang(PerCpu&, CpuNumber) {
  platform::DelayUs(5 * kHandshakeMs * 1000);
  return Error::kNone;
}

Error Goes(Kernel& kernel, CpuNumber cpu) { return CpuDown(kernel, cpu, CpuhpState::kOffline); }
Error Comes(Kernel& kernel, CpuNumber cpu) { return CpuUp(kernel, cpu, CpuhpState::kOnline); }

void ExpectTheOthersAreServed(Kernel& kernel) {
  EXPECT_EQ(Goes(kernel, kCpu3), Error::kNone);
  EXPECT_EQ(Comes(kernel, kCpu3), Error::kNone);
}

// Let go, it hangs with interrupts off, past the bound for its coming and that for its going.
// The next operation's lock waits for a grace period, which it holds up until it has parked.
TEST(LostCpu, WhoHangsOnItsWayUpIsNamedAndTriedAgain) {
  KernelMachine machine(Options());
  machine.Run([](Kernel& kernel) {
    EXPECT_EQ(Goes(kernel, kCpu2), Error::kNone);
    PlugStepIn(kernel, {CpuhpState(89), Section::kStarting, false, Hang, nullptr}, nullptr);
    EXPECT_EQ(Comes(kernel, kCpu2), Error::kTimeoutOnline);
    EXPECT_EQ(kernel.slot(kCpu2).error, static_cast<uint32_t>(abi::GuestError::kTimeoutOnline));
    EXPECT_FALSE(CpuOnline(kernel, kCpu2));
    EXPECT_EQ(Comes(kernel, kCpu2), Error::kTimeoutOnline);
    EXPECT_FALSE(CpuOnline(kernel, kCpu2));
  });
}

struct Hold {
  platform::Atomic<uint32_t> dying{0};
  platform::Atomic<uint32_t> held{0};
  Completion over;
};

// On CPU 1: keeps the lock that a CPU takes to say that it is dead.
void HoldItsLock(void* argument) {
  auto& hold = *static_cast<Hold*>(argument);
  Kernel& kernel = *CurrentThread()->kernel;
  EXPECT_TRUE(SpinForIt(hold.dying));
  {
    IrqSpinGuard guard(kernel, rcu::DataOf(kernel, kCpu2).leaf->ofl_lock);
    hold.held.Store(1, std::memory_order_seq_cst);
    platform::DelayUs(3 * kHandshakeMs * 1000);
  }
  hold.over.Complete(kernel);
}

// In CPU 2's STARTING section, on its way down.
Error MeetTheHolder(PerCpu& self, CpuNumber cpu) {
  if (cpu != kCpu2) return Error::kNone;
  auto& hold = OwnerOfPlugged<Hold>(self);
  hold.dying.Store(1, std::memory_order_seq_cst);
  EXPECT_TRUE(SpinForIt(hold.held));
  return Error::kNone;
}

// The bound is over before its idle loop can say that it is dead. It says so later, and the next
// operation takes it up.
TEST(LostCpu, WhoReportsDeadTooLateComesBackAtTheNextTry) {
  KernelMachine machine(Options());
  machine.Run([](Kernel& kernel) {
    auto& hold = *AllocateArray<Hold>(kernel, 1);
    PlugStepIn(kernel, {CpuhpState(89), Section::kStarting, false, nullptr, MeetTheHolder}, &hold);
    SpawnThread(kernel, {.name = "hold", .function = HoldItsLock, .argument = &hold, .cpu = 1});
    EXPECT_EQ(Goes(kernel, kCpu2), Error::kTimeoutDead);
    EXPECT_FALSE(CpuOnline(kernel, kCpu2));
    hold.over.Wait();
    SleepUs(50'000);
    EXPECT_EQ(Comes(kernel, kCpu2), Error::kNone);
    EXPECT_TRUE(CpuOnline(kernel, kCpu2));
    ExpectTheOthersAreServed(kernel);
  });
}

// Retries in which one CPU was brought up twice, the second time with success.
uint32_t SecondTries(const std::vector<abi::TraceRecord>& control) {
  uint32_t tries = 0;
  uint32_t second = 0;
  for (const abi::TraceRecord& record : control) {
    if (record.event == abi::TraceEvent::kRetry) tries = 0;
    if (record.event == abi::TraceEvent::kHotplugBegin) ++tries;
    if (record.event == abi::TraceEvent::kHotplugEnd && tries == 2 && record.value == 0) ++second;
  }
  return second;
}

// An AP that freezes where it is about to park says that it is dead when its retry has begun
// already, and would be kicked in vain: it runs. Now that it has parked, an INIT helps.
TEST(LostCpu, WhoParksDuringItsRetryIsTriedOnceMore) {
  uint32_t second = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(seed);
    KernelOptions options = Options();
    options.cpus = 2;
    options.seed = seed;
    options.chaos.on = true;
    options.chaos.frozen = sim::Rate::kWild;
    options.chaos.late_ap = sim::Rate::kWild;
    KernelMachine machine(options);
    machine.Run([](Kernel& kernel) {
      for (uint32_t i = 0; i < 4; ++i) HotplugRetry(kernel);
    });
    second += SecondTries(machine.Trace(0));
  }
  EXPECT_GT(second, 0u);
}

struct Bound {
  Completion done;
  uint32_t affinity = 0;
};

void TakeOwnCpuDown(void* argument) {
  auto& bound = *static_cast<Bound*>(argument);
  Thread& self = *CurrentThread();
  Kernel& kernel = *self.kernel;
  EXPECT_TRUE(SetAffinity(self, kCpu2.value));
  EXPECT_EQ(Goes(kernel, kCpu2), Error::kNone);
  bound.affinity = self.affinity.Load(std::memory_order_seq_cst);
  EXPECT_EQ(Comes(kernel, kCpu2), Error::kNone);
  EXPECT_TRUE(SetAffinity(self, kCpu3.value));
  EXPECT_EQ(Goes(kernel, kCpu2), Error::kNone);
  EXPECT_EQ(self.affinity.Load(std::memory_order_seq_cst), kCpu3.value) << "back to its own";
  bound.done.Complete(kernel);
}

// As with any thread that was bound to a CPU that goes, its binding is dropped.
TEST(ControlThread, IsFreeWhereItWasBoundToTheCpuThatItTookDown) {
  KernelMachine machine(Options());
  machine.Run([](Kernel& kernel) {
    auto& bound = *AllocateArray<Bound>(kernel, 1);
    SpawnThread(kernel, {.name = "down", .function = TakeOwnCpuDown, .argument = &bound});
    bound.done.Wait();
    EXPECT_EQ(bound.affinity, Thread::kAnyCpu);
  });
}

}  // namespace
}  // namespace sipi
