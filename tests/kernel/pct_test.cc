// Schedules by priority (guest/platform/sim/pct.cc).
#include <set>

#include "guest/kernel/sched/wait.h"
#include "tests/kernel/kernel_machine.h"

namespace sipi {
namespace {

constexpr uint32_t kSteps = 1'000;

struct Count {
  platform::Atomic<uint32_t> value{0};
};
struct Runners {
  platform::Atomic<uint32_t> go{0};
  Count steps[2];
  platform::Atomic<uint32_t> loser_steps{~0u};  // when the other one had done all of its own
  uint32_t winner = 0;
  Completion done;
};
struct Runner {
  Runners* all = nullptr;
  uint32_t index = 0;
};

void RunSteps(void* argument) {
  const auto& own = *static_cast<const Runner*>(argument);
  Runners& all = *own.all;
  (void)SpinForIt(all.go);
  for (uint32_t i = 0; i < kSteps; ++i)
    all.steps[own.index].value.FetchAdd(1, std::memory_order_seq_cst);
  uint32_t nobody = ~0u;
  const uint32_t others = all.steps[1 - own.index].value.Load(std::memory_order_seq_cst);
  if (all.loser_steps.Ref().CompareExchange(nobody, others, std::memory_order_seq_cst)) {
    all.winner = own.index;
  }
  all.done.Complete(*CurrentThread()->kernel);
}

struct Race {
  uint32_t winner = 0;
  uint32_t loser_steps = 0;
};

// Two CPUs with as much to do, at once.
Race RunRace(uint64_t seed, uint32_t change_points) {
  KernelOptions options;
  options.cpus = 3;
  options.seed = seed;
  options.chaos.on = true;
  options.chaos.schedule = sim::Schedule::kPct;
  options.chaos.change_points = change_points;
  options.chaos.expected_steps = 4'000;
  KernelMachine machine(options);
  Race race;
  machine.Run([&race](Kernel& kernel) {
    auto& all = *AllocateArray<Runners>(kernel, 1);
    auto* runners = AllocateArray<Runner>(kernel, 2);
    for (uint32_t i = 0; i < 2; ++i) {
      runners[i] = {&all, i};
      SpawnThread(kernel, {.name = "runner/%",
                           .index = i,
                           .function = RunSteps,
                           .argument = &runners[i],
                           .cpu = i + 1});
    }
    all.go.Exchange(1, std::memory_order_seq_cst);
    all.done.Wait();
    all.done.Wait();
    race = {all.winner, all.loser_steps.Load(std::memory_order_seq_cst)};
  });
  return race;
}

// No change: whoever has the higher priority does all it has to do before the other one goes on.
TEST(Pct, TheHighestPriorityRunsAlone) {
  std::set<uint32_t> winners;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Race race = RunRace(seed, 0);
    winners.insert(race.winner);
    // Until the other one has seen that it may begin.
    EXPECT_LT(race.loser_steps, 20u) << "seed " << seed;
  }
  EXPECT_EQ(winners.size(), 2u);
}

// With one, it may lose its turn in the middle.
TEST(Pct, AtAChangePointAnotherOneGoesOn) {
  uint32_t in_the_middle = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const uint32_t steps = RunRace(seed, 2).loser_steps;
    if (steps > 20 && steps < kSteps) ++in_the_middle;
  }
  EXPECT_GT(in_the_middle, 10u);
}

}  // namespace
}  // namespace sipi
