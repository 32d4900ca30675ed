// Who takes the CPU from whom, and when, in each preemption model.
#include "guest/kernel/sched/run_queue.h"
#include "guest/kernel/sched/time.h"
#include "tests/kernel/kernel_machine.h"

namespace sipi {
namespace {

using abi::Preemption;

constexpr uint32_t kHogUs = 30'000;

struct Contest {
  Completion done;
  platform::Atomic<uint32_t> begun{0};
  uint32_t polite = 0;   // 1: the hog calls CondResched, 2: MightResched
  bool guarded = false;  // it has preemption disabled
  uint64_t hog_end_ns = 0;
  uint64_t woken_ns = 0;
  uint64_t came_ns = 0;
};

void Hog(void* argument) {
  auto& contest = *static_cast<Contest*>(argument);
  contest.begun.Exchange(1, std::memory_order_seq_cst);
  if (contest.guarded) PreemptDisable();
  const uint64_t begin = platform::NowNs();
  while (platform::NowNs() - begin < uint64_t{kHogUs} * 1000) {
    platform::DelayUs(100);
    if (contest.polite == 1) CondResched();
    if (contest.polite == 2) MightResched();
  }
  contest.hog_end_ns = platform::NowNs();
  if (contest.guarded) PreemptEnable();
  contest.done.Complete(*CurrentThread()->kernel);
}

void Comer(void* argument) {
  auto& contest = *static_cast<Contest*>(argument);
  Kernel& kernel = *CurrentThread()->kernel;
  contest.came_ns = platform::NowNs();
  contest.done.Complete(kernel);
}

// A hog runs on CPU 1 when another thread is woken there.
Contest Compete(Preemption model, Priority comer, Contest wanted = {}) {
  KernelOptions options{.cpus = 2};
  options.kernel.preemption = model;
  KernelMachine machine(options);
  Contest result;
  machine.Run([&](Kernel& kernel) {
    auto& contest = *AllocateArray<Contest>(kernel, 1);
    contest.polite = wanted.polite;
    contest.guarded = wanted.guarded;
    Thread& late = SpawnThread(kernel, {.name = "comer",
                                        .function = Comer,
                                        .argument = &contest,
                                        .cpu = 1,
                                        .priority = comer,
                                        .asleep = true});
    SpawnThread(kernel, {.name = "hog", .function = Hog, .argument = &contest, .cpu = 1});
    while (contest.begun.Load(std::memory_order_acquire) == 0) SleepUs(10);
    platform::DelayUs(2000);  // longer than a wake-up waits for
    contest.woken_ns = platform::NowNs();
    WakeUp(late);
    contest.done.Wait();
    contest.done.Wait();
    result.hog_end_ns = contest.hog_end_ns;
    result.woken_ns = contest.woken_ns;
    result.came_ns = contest.came_ns;
  });
  return result;
}

constexpr uint64_t kAtOnceNs = 50'000;
constexpr uint64_t kJiffyNs = 4'000'000;

TEST(SchedPreempt, FullPreemptsForUrgentAndForOrdinaryThreadsAtOnce) {
  for (const Priority priority : {Priority::kFifo, Priority::kNormal}) {
    const Contest contest = Compete(Preemption::kFull, priority);
    EXPECT_LT(contest.came_ns, contest.woken_ns + kAtOnceNs);
    EXPECT_GT(contest.hog_end_ns, contest.came_ns);
  }
}

TEST(SchedPreempt, LazyPreemptsForUrgentThreadsAtOnceAndForOrdinaryOnesAtTheTick) {
  const Contest urgent = Compete(Preemption::kLazy, Priority::kFifo);
  EXPECT_LT(urgent.came_ns, urgent.woken_ns + kAtOnceNs);
  const Contest ordinary = Compete(Preemption::kLazy, Priority::kNormal);
  EXPECT_GT(ordinary.came_ns, ordinary.woken_ns + kAtOnceNs);
  EXPECT_LT(ordinary.came_ns, ordinary.woken_ns + kJiffyNs + kAtOnceNs);
  EXPECT_GT(ordinary.hog_end_ns, ordinary.came_ns);
}

TEST(SchedPreempt, NoneAndVoluntaryWaitForTheRunningThread) {
  for (const Preemption model : {Preemption::kNone, Preemption::kVoluntary}) {
    for (const Priority priority : {Priority::kFifo, Priority::kNormal}) {
      const Contest contest = Compete(model, priority);
      EXPECT_GE(contest.came_ns, contest.hog_end_ns);
    }
  }
}

TEST(SchedPreempt, CondReschedGivesTheCpuUpWhereNothingTakesItAway) {
  for (const Preemption model : {Preemption::kNone, Preemption::kVoluntary}) {
    Contest wanted;
    wanted.polite = 1;
    const Contest contest = Compete(model, Priority::kFifo, wanted);
    EXPECT_LT(contest.came_ns, contest.woken_ns + 200'000);
    EXPECT_GT(contest.hog_end_ns, contest.came_ns);
  }
}

TEST(SchedPreempt, MightReschedDoesSoWithVoluntaryOnly) {
  Contest wanted;
  wanted.polite = 2;
  const Contest voluntary = Compete(Preemption::kVoluntary, Priority::kFifo, wanted);
  EXPECT_LT(voluntary.came_ns, voluntary.woken_ns + 200'000);
  const Contest none = Compete(Preemption::kNone, Priority::kFifo, wanted);
  EXPECT_GE(none.came_ns, none.hog_end_ns);
}

TEST(SchedPreempt, DisabledPreemptionHoldsEverybodyOffUntilItIsEnabled) {
  Contest wanted;
  wanted.guarded = true;
  const Contest contest = Compete(Preemption::kFull, Priority::kFifo, wanted);
  EXPECT_GE(contest.came_ns, contest.hog_end_ns);
  EXPECT_LT(contest.came_ns, contest.hog_end_ns + kAtOnceNs);
}

struct Turns {
  Completion done;
  uint32_t sequence[64] = {};
  uint32_t count = 0;
};

struct Player {
  Turns* turns;
  uint32_t number;
};

// Writes its number down whenever it finds another's there.
void TakeTurns(void* argument) {
  const auto& player = *static_cast<Player*>(argument);
  Turns& turns = *player.turns;
  const uint64_t begin = platform::NowNs();
  while (platform::NowNs() - begin < 60'000'000) {
    platform::DelayUs(100);
    const bool last = turns.count != 0 && turns.sequence[turns.count - 1] == player.number;
    if (!last && turns.count < 64) turns.sequence[turns.count++] = player.number;
  }
  turns.done.Complete(*CurrentThread()->kernel);
}

TEST(SchedPreempt, ThreadsOfOnePriorityTakeTurns) {
  for (const Preemption model : {Preemption::kFull, Preemption::kLazy}) {
    KernelOptions options{.cpus = 2};
    options.kernel.preemption = model;
    KernelMachine machine(options);
    machine.Run([](Kernel& kernel) {
      auto& turns = *AllocateArray<Turns>(kernel, 1);
      auto* const players = AllocateArray<Player>(kernel, 3);
      for (uint32_t i = 0; i < 3; ++i) {
        players[i] = {&turns, i};
        SpawnThread(kernel,
                    {.name = "player", .function = TakeTurns, .argument = &players[i], .cpu = 1});
      }
      for (uint32_t i = 0; i < 3; ++i) turns.done.Wait();
      EXPECT_GE(turns.count, 6u);
      for (uint32_t i = 3; i < 6; ++i) EXPECT_EQ(turns.sequence[i], turns.sequence[i - 3]);
    });
  }
}

}  // namespace
}  // namespace sipi
