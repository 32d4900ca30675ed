// Case G8: one expedited grace period that begins while a CPU is at a given state of going off or
// coming up, beside readers on all CPUs. The simulator tries all schedules from the mark on: this
// script decides only where the two meet.
//
// Three CPUs: 0 asks for the grace period, 1 is the control CPU of the hotplug operation, 2 goes
// and comes. scenario_value is a CpuhpState, plus kUpwards: met on the way up.
#include "guest/kernel/hotplug/hotplug.h"
#include "guest/kernel/rcu/read_side.h"
#include "guest/kernel/sched/time.h"
#include "guest/scenario/plugged_step.h"
#include "guest/scenario/rcu_explore.h"

namespace sipi {
namespace explore {
namespace {

constexpr CpuNumber kAsker{0};
constexpr CpuNumber kControl{1};
constexpr CpuNumber kMover{2};
constexpr uint64_t kPatienceUs = 10'000'000;
// Two threads; and the mover itself, while it starts and while it dies.
constexpr uint32_t kThreads = 2;
constexpr uint32_t kReaders = kThreads + 1;

struct Script {
  Kernel* kernel = nullptr;
  Crew* crew = nullptr;
  abi::CpuhpState state = abi::CpuhpState::kOffline;
  bool upwards = false;
  platform::Atomic<uint32_t> went_down{0};
  // By reader; odd: it is within a section.
  struct Section {
    platform::Atomic<uint32_t> count{0};
  } section[kReaders];
};

struct Player : CrewMember {
  Script* script = nullptr;
};

// The operation has come to the state, or is beyond it.
void AwaitState(Script& script) {
  Kernel& kernel = *script.kernel;
  const platform::Deadline deadline = platform::DeadlineInUs(kPatienceUs);
  const auto state = static_cast<uint32_t>(script.state);
  bool reached = true;
  if (script.upwards) {
    const auto set = [](uint32_t value) { return value != 0; };
    reached = platform::SpinUntil(script.went_down.Ref(), set, deadline);
  }
  const bool upwards = script.upwards;
  const auto there = [state, upwards](uint32_t value) {
    return upwards ? value >= state : value <= state;
  };
  reached = reached && platform::SpinUntil(Progress(kernel, kMover, script.state), there, deadline);
  if (!reached) SIPI_PANIC("the CPU never came to that state");
}

void Ask(CrewMember& member) {
  Script& script = *static_cast<Player&>(member).script;
  AwaitState(script);
  platform::Trace(abi::TraceEvent::kScenario, 0, abi::kMarkChoices);
  uint32_t before[kReaders];
  for (uint32_t i = 0; i < kReaders; ++i) {
    before[i] = script.section[i].count.Load(std::memory_order_seq_cst);
  }
  rcu::SynchronizeExpedited(*script.kernel);
  for (uint32_t i = 0; i < kReaders; ++i) {
    const bool within = before[i] % 2 != 0;
    if (within && script.section[i].count.Load(std::memory_order_seq_cst) == before[i]) {
      SIPI_PANIC("an expedited grace period has ended before a reader that was there");
    }
  }
  platform::Trace(abi::TraceEvent::kScenario, 0, abi::kMarkNoChoices);
  script.crew->Stop();
}

void Operate(CrewMember& member) {
  Script& script = *static_cast<Player&>(member).script;
  Kernel& kernel = *script.kernel;
  if (CpuDown(kernel, kMover, abi::CpuhpState::kOffline) != Error::kNone) {
    SIPI_PANIC("the CPU does not go offline");
  }
  script.went_down.Store(1, std::memory_order_seq_cst);
  if (CpuUp(kernel, kMover, abi::CpuhpState::kOnline) != Error::kNone) {
    SIPI_PANIC("the CPU does not come back");
  }
}

void ReadFor30Us(platform::Atomic<uint32_t>& section) {
  rcu::ReadLock();
  section.FetchAdd(1, std::memory_order_seq_cst);
  platform::DelayUs(30);
  section.FetchAdd(1, std::memory_order_seq_cst);
  rcu::ReadUnlock();
}

void ReadOn(CrewMember& member) {
  Script& script = *static_cast<Player&>(member).script;
  platform::Atomic<uint32_t>& section = script.section[member.index].count;
  while (!script.crew->stopping()) {
    ReadFor30Us(section);
    // A CPU that has come back has its reader again.
    const CpuNumber place = member.index == 0 ? kMover : kControl;
    (void)SetAffinity(*CurrentThread(), place.value);
    SleepUs(20);
  }
}

// On the mover, interrupts off.
Error ReadOnMover(PerCpu& self, CpuNumber) {
  ReadFor30Us(OwnerOfPlugged<Script>(self).section[kThreads].count);
  return Error::kNone;
}

Player& MakePlayer(Script& script, void (*run)(CrewMember&)) {
  Player& player = *AllocateArray<Player>(*script.kernel, 1);
  player.script = &script;
  player.body = run;
  return player;
}

}  // namespace
}  // namespace explore

void RunExpHotplug(Kernel& kernel) {
  using namespace explore;  // NOLINT: the names of this file
  constexpr uint64_t kUpwards = uint64_t{1} << 32;
  Script& script = *AllocateArray<Script>(kernel, 1);
  script.kernel = &kernel;
  script.crew = &MakeCrew(kernel);
  const uint64_t value = kernel.params->scenario_value;
  script.upwards = (value & kUpwards) != 0;
  script.state = static_cast<abi::CpuhpState>(value & 0xffffffff);
  Crew& crew = *script.crew;
  PlugStepIn(kernel, {kMoverReads, Section::kStarting, false, ReadOnMover, ReadOnMover}, &script);
  for (uint32_t i = 0; i < kThreads; ++i) {
    crew.Spawn(MakePlayer(script, ReadOn), {.name = "explore_rd/%", .index = i});
  }
  crew.Spawn(MakePlayer(script, Ask), {.name = "explore_ask", .cpu = kAsker.value});
  crew.Spawn(MakePlayer(script, Operate), {.name = "explore_onoff", .cpu = kControl.value});
  crew.Join();
  rcu::Barrier(kernel);
}

}  // namespace sipi
