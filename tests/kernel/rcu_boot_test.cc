// Case G10: grace periods and callbacks at each stage of boot.
#include "guest/kernel/apic.h"
#include "guest/kernel/calibrate.h"
#include "guest/kernel/smpboot.h"
#include "tests/kernel/rcu_held.h"

namespace sipi {
namespace {

struct Counted {
  rcu::Head head;  // first
  uint32_t runs = 0;
};
struct Stages {
  Counted before_rcu[3];
  Counted alone[3];
  Counted without_threads[3];
  Counted during_bringup[40];
  Counted after[3];
  Completion done;
};

void CountIt(rcu::Head& head) { ++reinterpret_cast<Counted&>(head).runs; }

template <size_t N>
void CallAll(Kernel& kernel, Counted (&all)[N]) {
  for (Counted& each : all) rcu::Call(kernel, each.head, CountIt);
}
template <size_t N>
void ExpectEachOnce(const Counted (&all)[N], const char* stage) {
  for (const Counted& each : all) EXPECT_EQ(each.runs, 1u) << stage;
}

// Both kinds, and at once: no virtual time to speak of passes where nobody can be in the way.
void SynchronizeAtOnce(Kernel& kernel) {
  const uint64_t begin = platform::NowTicks();
  for (void (*const wait)(Kernel&) : {rcu::Synchronize, rcu::SynchronizeExpedited}) {
    kernel.rcu == nullptr ? wait(kernel) : WaitAndLookAtCookies(kernel, wait);
  }
  const uint64_t ms = (platform::NowTicks() - begin) / kernel.params->tsc_khz;
  EXPECT_EQ(ms, 0u);
}

void DuringBringup(void* argument) {
  auto& stages = *static_cast<Stages*>(argument);
  Kernel& kernel = *CurrentThread()->kernel;
  for (Counted& each : stages.during_bringup) {
    rcu::Call(kernel, each.head, CountIt);
    rcu::Synchronize(kernel);
    rcu::SynchronizeExpedited(kernel);
  }
  stages.done.Complete(kernel);
}

void SetUpBootCpu(Kernel& kernel, PerCpu& self) {
  InitPerCpu(kernel, self, kBootCpu);
  EnableLocalApic();
  abi::CpuSlot& slot = kernel.slot(kBootCpu);
  slot.sync_state = static_cast<uint32_t>(abi::SyncState::kOnline);
  slot.cpuhp_state = static_cast<uint32_t>(abi::CpuhpState::kOnline);
  slot.online = 1;
  kernel.tsc_deadline = platform::HasTscDeadline();
  kernel.strategy = kernel.params->strategy;
  CalibrateBootCpu(self);
}

// As KernelMain, with something asked of RCU wherever it can be.
void Boot(Kernel& kernel) {
  PerCpu& self = kernel.percpu(kBootCpu);
  SetUpBootCpu(kernel, self);
  auto& stages = *AllocateArray<Stages>(kernel, 1);
  SynchronizeAtOnce(kernel);
  rcu::ReadLock();
  CallAll(kernel, stages.before_rcu);
  rcu::ReadUnlock();
  SchedInit(kernel);
  SynchronizeAtOnce(kernel);
  rcu::Init(kernel);
  platform::IrqEnable();
  CallAll(kernel, stages.alone);
  SynchronizeAtOnce(kernel);
  rcu::SchedulerStarting(kernel);
  CallAll(kernel, stages.without_threads);
  SynchronizeAtOnce(kernel);
  EXPECT_EQ(stages.before_rcu[0].runs, 0u);  // nobody runs them yet
  rcu::SpawnThreads(kernel);
  SpawnThread(kernel, {.name = "early", .function = DuringBringup, .argument = &stages});
  platform::PrepareStartup(kernel);
  BringUpSecondaryCpus(self);
  stages.done.Wait();
  rcu::EndInkernelBoot(kernel);
  CallAll(kernel, stages.after);
  rcu::Synchronize(kernel);
  rcu::SynchronizeExpedited(kernel);
  rcu::Barrier(kernel);
  ExpectEachOnce(stages.before_rcu, "before RCU is set up");
  ExpectEachOnce(stages.alone, "RCU, one CPU, no other thread may run");
  ExpectEachOnce(stages.without_threads, "threads may run, RCU has none");
  ExpectEachOnce(stages.during_bringup, "while APs come up");
  ExpectEachOnce(stages.after, "after");
  kernel.result->status = static_cast<uint32_t>(abi::GuestStatus::kDone);
  platform::Exit(0);
}

TEST(BootStages, GracePeriodsNeverHangAndCallbacksRunOnce) {
  for (const bool expedited : {true, false}) {
    for (const bool normal : {false, true}) {
      for (const RcuMode& mode : kRcuModes) {
        SCOPED_TRACE(mode.name);
        for (uint64_t seed = 1; seed <= 6; ++seed) {
          KernelOptions options = RcuOptions(4, mode);
          options.seed = seed;
          options.chaos = ChaosOf(seed);
          options.kernel.boot_expedited = expedited ? 1 : 0;
          options.kernel.rcu_normal = normal ? 1 : 0;
          KernelMachine machine(options);
          machine.RunBoot(Boot);
        }
      }
    }
  }
}

}  // namespace
}  // namespace sipi
