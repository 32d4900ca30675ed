// The cases of readers, and of RCU while the machine boots.
#include "guest/kernel/alloc.h"
#include "guest/kernel/rcu/internal.h"
#include "guest/kernel/rcu/read_side.h"
#include "guest/kernel/sched/time.h"
#include "guest/scenario/cases.h"
#include "guest/scenario/crew.h"
#include "guest/scenario/plugged_step.h"
#include "guest/scenario/scenario.h"

namespace sipi {
namespace {

constexpr CpuNumber kMover{2};

// --- G12

struct ReaderLeft {
  Completion inside;
  Completion go;
  platform::Atomic<uint32_t> reads{0};
  platform::Atomic<uint32_t> passed{0};
};

struct Actor : CrewMember {
  ReaderLeft* left = nullptr;
};

// Loses its CPU in the middle, by its own doing: it sleeps.
void HoldSection(CrewMember& member) {
  ReaderLeft& left = *static_cast<Actor&>(member).left;
  SIPI_ASSERT(SetAffinity(*CurrentThread(), kMover.value));
  rcu::ReadLock();
  left.reads.Store(1, std::memory_order_seq_cst);
  left.inside.Complete(member.crew->kernel());
  left.go.Wait();
  left.reads.Store(0, std::memory_order_seq_cst);
  rcu::ReadUnlock();
}

// The way down waits for grace periods itself, so it ends after the reader too.
void TakeDown(CrewMember& member) {
  ReaderLeft& left = *static_cast<Actor&>(member).left;
  SIPI_ASSERT(CpuDown(member.crew->kernel(), kMover, abi::CpuhpState::kOffline) == Error::kNone);
  SIPI_ASSERT(left.reads.Load(std::memory_order_seq_cst) == 0);
}

void WaitNormal(CrewMember& member) {
  ReaderLeft& left = *static_cast<Actor&>(member).left;
  rcu::Synchronize(member.crew->kernel());
  SIPI_ASSERT(left.reads.Load(std::memory_order_seq_cst) == 0);
  left.passed.FetchAdd(1, std::memory_order_seq_cst);
}

void WaitExpedited(CrewMember& member) {
  ReaderLeft& left = *static_cast<Actor&>(member).left;
  rcu::SynchronizeExpedited(member.crew->kernel());
  SIPI_ASSERT(left.reads.Load(std::memory_order_seq_cst) == 0);
  left.passed.FetchAdd(1, std::memory_order_seq_cst);
}

// The reader's CPU goes while it is inside. The way down waits for those who are there when it
// begins, so this one is put on the list of the CPU's leaf when that wait is over, as if it had
// been preempted there then.
struct ReaderOutlives : ReaderLeft {
  platform::Atomic<uint32_t> armed{0};
  platform::Atomic<uint32_t> dying{0};
  platform::Atomic<uint32_t> queued{0};
  // The normal grace period begins before the CPU is dead, and waits for it too.
  platform::Atomic<uint32_t> begins_first{0};
};

void AwaitSet(platform::Atomic<uint32_t>& word) {
  while (word.Load(std::memory_order_seq_cst) == 0) SleepJiffies(1);
}

// The dying CPU, interrupts off.
Error DieWithReader(PerCpu& self, CpuNumber cpu) {
  auto& left = OwnerOfPlugged<ReaderOutlives>(self);
  if (cpu != kMover || left.armed.Load(std::memory_order_seq_cst) == 0) return Error::kNone;
  left.dying.Store(1, std::memory_order_seq_cst);
  const platform::Deadline for_ever = WaitedForEver(*self.kernel);
  const auto set = [](uint32_t value) { return value != 0; };
  SIPI_ASSERT(platform::SpinPolitely(left.queued.Ref(), set, 100, for_ever));
  if (left.begins_first.Load(std::memory_order_seq_cst) == 0) return Error::kNone;
  const uint64_t mask = self.rcu->grpmask;
  const auto waited_for = [mask](uint64_t waits) { return (waits & mask) != 0; };
  SIPI_ASSERT(platform::SpinPolitely(self.rcu->leaf->qsmask.Ref(), waited_for, 100, for_ever));
  return Error::kNone;
}

void ReadAsIfOnMover(CrewMember& member) {
  auto& left = static_cast<ReaderOutlives&>(*static_cast<Actor&>(member).left);
  AwaitSet(left.dying);
  {
    IrqGuard irq;
    rcu::ReadLock();
    rcu::QueueBlockedReader(member.crew->kernel().percpu(kMover), *CurrentThread());
  }
  left.reads.Store(1, std::memory_order_seq_cst);
  left.queued.Store(1, std::memory_order_seq_cst);
  left.go.Wait();
  left.reads.Store(0, std::memory_order_seq_cst);
  rcu::ReadUnlock();
}

void TakeDownAround(CrewMember& member) {
  SIPI_ASSERT(CpuDown(member.crew->kernel(), kMover, abi::CpuhpState::kOffline) == Error::kNone);
}

void SpawnActor(Crew& crew, ReaderLeft& left, void (*body)(CrewMember&), uint32_t cpu) {
  Actor& actor = *AllocateArray<Actor>(crew.kernel(), 1);
  actor.left = &left;
  actor.body = body;
  crew.Spawn(actor, {.name = "actor", .cpu = cpu});
}

// CPU 3, the mover's neighbour, is off: the reader stays behind on a leaf without CPUs.
void OutliveCpu(Kernel& kernel, ReaderOutlives& left, bool begins_first) {
  left.dying.Store(0, std::memory_order_seq_cst);
  left.queued.Store(0, std::memory_order_seq_cst);
  left.passed.Store(0, std::memory_order_seq_cst);
  left.begins_first.Store(begins_first ? 1 : 0, std::memory_order_seq_cst);
  left.armed.Store(1, std::memory_order_seq_cst);
  Crew& crew = MakeCrew(kernel);
  SpawnActor(crew, left, ReadAsIfOnMover, 1);
  SpawnActor(crew, left, TakeDownAround, 1);
  AwaitSet(left.queued);
  if (begins_first) SpawnActor(crew, left, WaitNormal, 0);
  while (
      platform::AtomicRef<uint32_t>(kernel.slot(kMover).parked).Load(std::memory_order_seq_cst) ==
      0) {
    SleepJiffies(1);
  }
  const rcu::Data& gone = rcu::DataOf(kernel, kMover);
  SIPI_ASSERT((gone.leaf->qsmaskinitnext & gone.grpmask) == 0);
  if (!begins_first) SpawnActor(crew, left, WaitNormal, 0);
  SpawnActor(crew, left, WaitExpedited, 0);
  SleepJiffies(40);
  SIPI_ASSERT(left.passed.Load(std::memory_order_seq_cst) == 0);
  left.go.Complete(kernel);
  crew.Join();
  SIPI_ASSERT(left.passed.Load(std::memory_order_seq_cst) == 2);
  left.armed.Store(0, std::memory_order_seq_cst);
  rcu::Synchronize(kernel);
  rcu::SynchronizeExpedited(kernel);
  SIPI_ASSERT(CpuUp(kernel, kMover, abi::CpuhpState::kOnline) == Error::kNone);
  rcu::Synchronize(kernel);
}

void OutliveCpu(Kernel& kernel) {
  constexpr CpuNumber kNeighbour{3};
  auto& left = *AllocateArray<ReaderOutlives>(kernel, 1);
  PlugStepIn(kernel,
             {static_cast<abi::CpuhpState>(89), Section::kStarting, false, nullptr, DieWithReader},
             &left);
  SIPI_ASSERT(CpuDown(kernel, kNeighbour, abi::CpuhpState::kOffline) == Error::kNone);
  for (const bool begins_first : {true, false}) OutliveCpu(kernel, left, begins_first);
  SIPI_ASSERT(CpuUp(kernel, kNeighbour, abi::CpuhpState::kOnline) == Error::kNone);
}

// --- G10

constexpr uint32_t kEarlyCallbacks = 3;

struct BootStages {
  CountedHead heads[static_cast<size_t>(BootStage::kCpusUp) + 1][kEarlyCallbacks];
  platform::Atomic<uint32_t> stop{0};
  Completion during_over;
  uint32_t during_rounds = 0;
};

// Beside bring-up, on its thread.
void DuringBringUp(void* argument) {
  auto& stages = *static_cast<BootStages*>(argument);
  Kernel& kernel = *CurrentThread()->kernel;
  do {
    rcu::Synchronize(kernel);
    rcu::SynchronizeExpedited(kernel);
    ++stages.during_rounds;
  } while (stages.stop.Load(std::memory_order_seq_cst) == 0);
  stages.during_over.Complete(kernel);
}

// Where RCU is set up, what has been waited for has passed, whichever kind of cookie is asked. (A
// short one may need more than one grace period where others overlap.)
void WaitAndLookAtCookies(Kernel& kernel, BootStage stage, void (*wait)(Kernel&)) {
  if (kernel.rcu == nullptr) return wait(kernel);
  const rcu::Cookie cookie = rcu::GetState(kernel);
  const rcu::FullCookie full = rcu::GetStateFull(kernel);
  wait(kernel);
  SIPI_ASSERT(rcu::PollFull(kernel, full));
  SIPI_ASSERT(stage >= BootStage::kThreadsUp || rcu::Poll(kernel, cookie));
}

}  // namespace

void CaseReaderLeft(Kernel& kernel) {
  auto& left = *AllocateArray<ReaderLeft>(kernel, 1);
  Crew& crew = MakeCrew(kernel);
  auto* actors = AllocateArray<Actor>(kernel, 4);
  for (uint32_t i = 0; i < 4; ++i) actors[i].left = &left;
  actors[0].body = HoldSection;
  crew.Spawn(actors[0], {.name = "holder"});
  left.inside.Wait();
  SleepJiffies(3);  // the CPU is idle by now
  actors[1].body = TakeDown;
  crew.Spawn(actors[1], {.name = "down", .cpu = 0});
  actors[2].body = WaitNormal;
  crew.Spawn(actors[2], {.name = "normal", .cpu = 1});
  actors[3].body = WaitExpedited;
  crew.Spawn(actors[3], {.name = "expedited", .cpu = 1});
  SleepJiffies(40);
  SIPI_ASSERT(left.passed.Load(std::memory_order_seq_cst) == 0);
  left.go.Complete(kernel);
  crew.Join();
  SIPI_ASSERT(left.passed.Load(std::memory_order_seq_cst) == 2);
  // Nothing of the CPU that has gone is waited for.
  rcu::Synchronize(kernel);
  rcu::SynchronizeExpedited(kernel);
  SIPI_ASSERT(CpuUp(kernel, kMover, abi::CpuhpState::kOnline) == Error::kNone);
  rcu::Synchronize(kernel);
  OutliveCpu(kernel);
}

void NoteBootStage(Kernel& kernel, BootStage stage) {
  constexpr uint64_t kNumber = 10;
  if (kernel.params->scenario != abi::Scenario::kCases ||
      kernel.params->scenario_value != kNumber) {
    return;
  }
  if (stage == BootStage::kClockKnown) {
    kernel.case_data = AllocateArray<BootStages>(kernel, 1);
  }
  auto& stages = *static_cast<BootStages*>(kernel.case_data);
  CountedHead(&heads)[kEarlyCallbacks] = stages.heads[static_cast<size_t>(stage)];
  // Nobody can be in the way yet: this returns by itself, or never.
  WaitAndLookAtCookies(kernel, stage, rcu::Synchronize);
  WaitAndLookAtCookies(kernel, stage, rcu::SynchronizeExpedited);
  for (CountedHead& head : heads) rcu::Call(kernel, head, CountRun);
  if (stage < BootStage::kThreadsUp) {
    for (CountedHead& head : heads) SIPI_ASSERT(RunsOf(head) == 0);
  }
  if (stage == BootStage::kThreadsUp) {
    SpawnThread(kernel, {.name = "early", .function = DuringBringUp, .argument = &stages});
  }
}

void CaseBootStages(Kernel& kernel) {
  auto& stages = *static_cast<BootStages*>(kernel.case_data);
  stages.stop.Store(1, std::memory_order_seq_cst);
  stages.during_over.Wait();
  SIPI_ASSERT(stages.during_rounds != 0);
  rcu::Synchronize(kernel);
  rcu::SynchronizeExpedited(kernel);
  rcu::Barrier(kernel);
  for (auto& stage : stages.heads) {
    for (CountedHead& head : stage) SIPI_ASSERT(RunsOf(head) == 1);
  }
}

}  // namespace sipi
