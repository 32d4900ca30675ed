// The cases in which steps of the hotplug table do something, or fail.
#include "guest/kernel/alloc.h"
#include "guest/kernel/call.h"
#include "guest/kernel/rcu/gp_seq.h"
#include "guest/kernel/rcu/state.h"
#include "guest/kernel/sched/time.h"
#include "guest/scenario/cases.h"
#include "guest/scenario/crew.h"
#include "guest/scenario/plugged_step.h"

namespace sipi {
namespace {

using abi::CpuhpState;

constexpr CpuNumber kMover{2};

constexpr CpuhpState State(uint32_t number) { return static_cast<CpuhpState>(number); }

void Down(Kernel& kernel) {
  SIPI_ASSERT(CpuDown(kernel, kMover, CpuhpState::kOffline) == Error::kNone);
  const abi::CpuSlot& slot = kernel.slot(kMover);
  SIPI_ASSERT(slot.sync_state == static_cast<uint32_t>(abi::SyncState::kDead) && slot.parked == 1);
  SIPI_ASSERT(!CpuOnline(kernel, kMover));
}

void Up(Kernel& kernel) {
  SIPI_ASSERT(CpuUp(kernel, kMover, CpuhpState::kOnline) == Error::kNone);
  SIPI_ASSERT(CpuOnline(kernel, kMover) && CpuActive(kernel, kMover));
}

// --- G7

Error WaitExpedited(PerCpu& self, CpuNumber) {
  rcu::SynchronizeExpedited(*self.kernel);
  return Error::kNone;
}

void Contend(CrewMember& member) {
  Kernel& kernel = member.crew->kernel();
  while (!member.crew->stopping()) {
    CpusReadLock(kernel);
    SleepUs(300);
    CpusReadUnlock(kernel);
    rcu::SynchronizeExpedited(kernel);
    SleepUs(100);
  }
}

// --- G9

constexpr uint32_t kCallbacks = 1000;

struct LeftCallbacks {
  CountedHead heads[kCallbacks];
  platform::Atomic<uint32_t> queued{0};
  platform::Atomic<uint32_t> awaited{0};  // the teardown step has returned
  Completion queued_event;
};

uint32_t RunExactlyOnce(LeftCallbacks& left) {
  uint32_t count = 0;
  for (CountedHead& head : left.heads) count += RunsOf(head) == 1 ? 1u : 0u;
  return count;
}

// The dying CPU, interrupts off: none of them can run here any more.
Error QueueAndDie(PerCpu& self, CpuNumber) {
  auto& left = OwnerOfPlugged<LeftCallbacks>(self);
  for (CountedHead& head : left.heads) rcu::Call(*self.kernel, head, CountRun);
  left.queued.Store(1, std::memory_order_seq_cst);
  left.queued_event.Complete(*self.kernel);
  // The barrier shall have looked at the others, which have no callbacks yet, before these move.
  const auto runs = [](uint64_t seq) { return rcu::SeqState(seq) != 0; };
  SIPI_ASSERT(platform::SpinPolitely(self.kernel->rcu->barrier_seq.Ref(), runs, 100,
                                     WaitedForEver(*self.kernel)));
  platform::DelayUs(30'000);
  return Error::kNone;
}

// The control CPU, the other one dead.
Error AwaitCallbacks(PerCpu& self, CpuNumber) {
  auto& left = OwnerOfPlugged<LeftCallbacks>(self);
  while (RunsOf(left.heads[kCallbacks - 1]) == 0) SleepJiffies(1);
  SIPI_ASSERT(RunExactlyOnce(left) == kCallbacks);
  left.awaited.Store(1, std::memory_order_seq_cst);
  return Error::kNone;
}

struct BarrierCaller : CrewMember {
  LeftCallbacks* left = nullptr;
};

void CallBarrier(CrewMember& member) {
  LeftCallbacks& left = *static_cast<BarrierCaller&>(member).left;
  left.queued_event.Wait();
  rcu::Barrier(member.crew->kernel());
  SIPI_ASSERT(RunExactlyOnce(left) == kCallbacks);
}

// --- G11: steps that count how far the CPU has come. Each is entered from the one below and left
// to it, or the count is wrong.

struct Ladder {
  uint32_t height = 0;
};

constexpr uint32_t kRungs[] = {2, 44, 59, 89, 93, 137, 148, 189, 192, 233};
constexpr uint32_t kRungCount = sizeof(kRungs) / sizeof(kRungs[0]);

uint32_t& Height(PerCpu& self) { return OwnerOfPlugged<Ladder>(self).height; }

template <uint32_t kRung>
Error Climb(PerCpu& self, CpuNumber cpu) {
  if (cpu != kMover) return Error::kNone;
  SIPI_ASSERT(Height(self) == kRung);
  Height(self) = kRung + 1;
  return Error::kNone;
}

template <uint32_t kRung>
Error Descend(PerCpu& self, CpuNumber cpu) {
  if (cpu != kMover) return Error::kNone;
  SIPI_ASSERT(Height(self) == kRung + 1);
  Height(self) = kRung;
  return Error::kNone;
}

constexpr Section SectionOf(uint32_t state) {
  if (state < 85) return Section::kPrepare;
  return state < 142 ? Section::kStarting : Section::kOnline;
}

template <uint32_t kRung>
void AddRungs(CpuhpStep* steps) {
  constexpr Section kSection = SectionOf(kRungs[kRung]);
  steps[kRung] = {State(kRungs[kRung]), kSection, kSection != Section::kStarting, Climb<kRung>,
                  Descend<kRung>};
  if constexpr (kRung + 1 < kRungCount) AddRungs<kRung + 1>(steps);
}

// The CPU is off. Every step that can fail on the way up does so.
void FailUpwards(Kernel& kernel, Ladder& ladder, CpuhpState state) {
  SIPI_ASSERT(InjectFailure(kernel, kMover, state) == Error::kNone);
  const Error error = CpuUp(kernel, kMover, CpuhpState::kOnline);
  ClearFailure(kernel, kMover);
  SIPI_ASSERT(error == Error::kNone || error == Error::kStepFailed);
  SIPI_ASSERT(CpuOnline(kernel, kMover) == (error == Error::kNone));
  SIPI_ASSERT(ladder.height == (error == Error::kNone ? kRungCount : 0));
  if (error == Error::kNone) Down(kernel);  // a step of the way down only
}

void FailDownwards(Kernel& kernel, Ladder& ladder, CpuhpState state) {
  SIPI_ASSERT(InjectFailure(kernel, kMover, state) == Error::kNone);
  const Error error = CpuDown(kernel, kMover, CpuhpState::kOffline);
  ClearFailure(kernel, kMover);
  if (error == Error::kNone) return Up(kernel);  // a step of the way up only
  SIPI_ASSERT(error == Error::kStepFailed && ladder.height == kRungCount);
  SIPI_ASSERT(CpuOnline(kernel, kMover) && CpuActive(kernel, kMover));
}

}  // namespace

void CaseExpeditedStep(Kernel& kernel) {
  PlugStepIn(kernel, {State(2), Section::kPrepare, true, WaitExpedited, WaitExpedited}, nullptr);
  const auto off_and_on = [&kernel] {
    const uint64_t before = rcu::ExpSeq(kernel);
    Down(kernel);
    Up(kernel);
    return rcu::ExpSeq(kernel) - before;
  };
  constexpr uint64_t kTwoGracePeriods = 2u << 2;  // two bits of state (rcu/gp_seq.h)
  SIPI_ASSERT(off_and_on() >= kTwoGracePeriods);
  Crew& crew = MakeCrew(kernel);
  auto* members = AllocateArray<CrewMember>(kernel, 2);
  for (uint32_t i = 0; i < 2; ++i) {
    members[i].body = Contend;
    crew.Spawn(members[i], {.name = "contender/%", .index = i});
  }
  SIPI_ASSERT(off_and_on() >= kTwoGracePeriods);
  crew.Stop();
  crew.Join();
  kernel.rcu->normal_knob.Store(1, std::memory_order_seq_cst);
  SIPI_ASSERT(off_and_on() == 0);
  kernel.rcu->normal_knob.Store(0, std::memory_order_seq_cst);
}

void CaseCallbacksLeft(Kernel& kernel) {
  auto& left = *AllocateArray<LeftCallbacks>(kernel, 1);
  PlugStepIn(kernel, {State(2), Section::kPrepare, false, nullptr, AwaitCallbacks}, &left);
  PlugStepIn(kernel, {State(93), Section::kStarting, false, nullptr, QueueAndDie}, &left);
  Crew& crew = MakeCrew(kernel);
  auto& caller = *AllocateArray<BarrierCaller>(kernel, 1);
  caller.left = &left;
  caller.body = CallBarrier;
  crew.Spawn(caller, {.name = "barrier", .cpu = 1});
  Down(kernel);
  SIPI_ASSERT(left.queued.Load(std::memory_order_seq_cst) == 1);
  SIPI_ASSERT(left.awaited.Load(std::memory_order_seq_cst) == 1);
  crew.Join();
  rcu::Barrier(kernel);
  SIPI_ASSERT(RunExactlyOnce(left) == kCallbacks);
  Up(kernel);
}

void CaseFailures(Kernel& kernel) {
  auto& ladder = *AllocateArray<Ladder>(kernel, 1);
  ladder.height = kRungCount;
  CpuhpStep steps[kRungCount];
  AddRungs<0>(steps);
  for (const CpuhpStep& step : steps) PlugStepIn(kernel, step, &ladder);
  const uint32_t first = 1;
  const auto last = static_cast<uint32_t>(CpuhpState::kOnline);
  uint32_t down = 0;
  for (uint32_t state = first; state < last; ++state) {
    if (InjectFailure(kernel, kMover, State(state)) != Error::kNone) continue;
    SIPI_ASSERT(SectionOf(state) != Section::kStarting);
    FailDownwards(kernel, ladder, State(state));
    ++down;
  }
  Down(kernel);
  SIPI_ASSERT(ladder.height == 0);
  uint32_t up = 0;
  for (uint32_t state = first; state < last; ++state) {
    if (InjectFailure(kernel, kMover, State(state)) != Error::kNone) continue;
    SIPI_ASSERT(SectionOf(state) != Section::kStarting);
    FailUpwards(kernel, ladder, State(state));
    ++up;
  }
  // The kernel's own and the rungs.
  SIPI_ASSERT(down >= 8 && up >= 14);
  Up(kernel);
  for (uint32_t round = 0; round < kernel.params->scenario_knobs.rounds; ++round) {
    Down(kernel);
    SIPI_ASSERT(ladder.height == 0);
    Up(kernel);
    SIPI_ASSERT(ladder.height == kRungCount);
  }
}

}  // namespace sipi
