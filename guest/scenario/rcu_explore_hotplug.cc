// The explored hotplug: a thread that takes CPUs off and on, what those CPUs do on their way, and
// how others meet them there.
#include "guest/kernel/hotplug/hotplug.h"
#include "guest/kernel/sched/time.h"
#include "guest/scenario/plugged_step.h"
#include "guest/scenario/rcu_explore.h"

namespace sipi::explore {
namespace {

constexpr uint64_t kPatienceUs = 8'000;
constexpr uint64_t kLookUs = 200;

void Move(Explore& explore, CpuNumber cpu, bool upwards) {
  Kernel& kernel = *explore.kernel;
  explore.moving.Store(2 * cpu.value + (upwards ? 1u : 0u), std::memory_order_seq_cst);
  const Error error = upwards ? CpuUp(kernel, cpu, abi::CpuhpState::kOnline)
                              : CpuDown(kernel, cpu, abi::CpuhpState::kOffline);
  explore.moving.Store(0, std::memory_order_seq_cst);
  if (error == Error::kNone) return;
  SIPI_PANIC(upwards ? "a CPU does not come back" : "a CPU does not go offline");
}

// Until pred(word), but not for ever: the CPU where this spins may be the one that is to go, so it
// lets others run in between. False: the deadline has passed.
template <class Pred>
bool Await(platform::AtomicRef<uint32_t> word, Pred pred, platform::Deadline deadline) {
  while (!platform::SpinUntil(word, pred, platform::DeadlineInUs(kLookUs))) {
    if (platform::Expired(deadline)) return false;
    CondResched();
  }
  return true;
}

// On the CPU that moves, interrupts off.
Error ReadAndCall(PerCpu& self, CpuNumber) {
  auto& explore = OwnerOfPlugged<Explore>(self);
  if (explore.mover.OneIn(2)) QueueRemote(explore);
  if (explore.mover.OneIn(2)) ReadOnce(explore, explore.mover, true);
  return Error::kNone;
}

}  // namespace

platform::AtomicRef<uint32_t> Progress(Kernel& kernel, CpuNumber cpu, abi::CpuhpState state) {
  abi::CpuSlot& slot = kernel.slot(cpu);
  return platform::AtomicRef<uint32_t>(state <= abi::CpuhpState::kBringupCpu ? slot.prepare_state
                                                                             : slot.cpuhp_state);
}

// Off and on again, with callbacks left on a CPU that goes.
void OnOff(CrewMember& member) {
  auto& self = static_cast<Actor&>(member);
  Explore& explore = *self.explore;
  const uint32_t cpus = explore.kernel->params->cpu_count;
  for (uint32_t round = 0; round < explore.rounds && cpus > 1; ++round) {
    SleepSomewhat(self.random, 4'000);
    const CpuNumber cpu(1 + self.random.Below(cpus - 1));
    // Whose control CPU takes over what is left there.
    if (self.random.OneIn(2)) (void)SetAffinity(*CurrentThread(), self.random.Below(cpus));
    (void)SetAffinity(*CurrentThread(), Thread::kAnyCpu);
    Move(explore, cpu, false);
    SleepSomewhat(self.random, 4'000);
    Move(explore, cpu, true);
  }
}

void PlugMoverIn(Explore& explore) {
  PlugStepIn(*explore.kernel, {kMoverReads, Section::kStarting, false, ReadAndCall, ReadAndCall},
             &explore);
}

void MeetHotplug(Actor& self) {
  Explore& explore = *self.explore;
  Kernel& kernel = *explore.kernel;
  const CpuhpTable& table = *kernel.hotplug->steps;
  const auto count = static_cast<uint32_t>(table.begin[kSections] - table.begin[0]);
  const abi::CpuhpState state = table.begin[0][self.random.Below(count)].state;
  const bool upwards = self.random.OneIn(2);
  const platform::Deadline deadline = platform::DeadlineInUs(kPatienceUs);
  const auto moves = [upwards](uint32_t moving) {
    return moving != 0 && (moving % 2 != 0) == upwards;
  };
  if (!Await(explore.moving.Ref(), moves, deadline)) return;
  const uint32_t moving = explore.moving.Load(std::memory_order_seq_cst);
  if (!moves(moving)) return;
  const auto bound = static_cast<uint32_t>(state);
  const auto there = [bound, upwards](uint32_t value) {
    return upwards ? value >= bound : value <= bound;
  };
  (void)Await(Progress(kernel, CpuNumber(moving / 2), state), there, deadline);
}

}  // namespace sipi::explore
