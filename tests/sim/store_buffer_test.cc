// The store buffer by litmus tests (x86-TSO: Sewell et al., CACM 53(7), 2010): what it lets happen,
// and what it must not.
#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "tests/sim/program_machine.h"

namespace sipi::sim {
namespace {

enum class Litmus { kPlain, kSeqCst, kLockedBetween, kMessage, kForwarding };

struct alignas(64) Word {
  uint32_t value = 0;
};

struct Shape {
  Word go, done, x, y, spare[2];
  uint32_t seen[2] = {9, 9};
  Litmus litmus = Litmus::kPlain;
};
using Litmuses = ProgramMachine<Shape>;
constexpr auto kRelaxed = std::memory_order_relaxed;

void Side(Shape& shape, uint32_t me) {
  uint32_t& mine = me == 0 ? shape.x.value : shape.y.value;
  uint32_t& other = me == 0 ? shape.y.value : shape.x.value;
  switch (shape.litmus) {
    case Litmus::kPlain:
    case Litmus::kSeqCst:
    case Litmus::kLockedBetween:
      Shared(mine).Store(1, shape.litmus == Litmus::kSeqCst ? std::memory_order_seq_cst : kRelaxed);
      if (shape.litmus == Litmus::kLockedBetween)
        Shared(shape.spare[me].value).Exchange(1, kRelaxed);
      shape.seen[me] = Shared(other).Load(kRelaxed);
      return;
    case Litmus::kMessage:
      if (me == 0) {
        Shared(shape.x.value).Store(1, kRelaxed);
        Shared(shape.y.value).Store(1, kRelaxed);
      } else {
        shape.seen[0] = Shared(shape.y.value).Load(kRelaxed);
        shape.seen[1] = Shared(shape.x.value).Load(kRelaxed);
      }
      return;
    case Litmus::kForwarding:
      Shared(mine).Store(7, kRelaxed);
      shape.seen[me] = Shared(mine).Load(kRelaxed);
      return;
  }
}

void Boot(Cpu& cpu) {
  EnableApic();
  Shape& shape = Litmuses::Of(cpu.machine);
  SendInit(1);
  SendSipi(8, 1);
  WaitForValue(shape.done.value, 1, 100'000);
  Increment(shape.go.value);
  Side(shape, 0);
  WaitForValue(shape.done.value, 2, 100'000);
  EndRun(cpu);
}

void Ap(Cpu& cpu, Vector) {
  EnableApic();
  Shape& shape = Litmuses::Of(cpu.machine);
  Increment(shape.done.value);
  WaitForValue(shape.go.value, 1, 100'000);
  Side(shape, 1);
  Increment(shape.done.value);
  for (;;) platform::HaltEnabled();
}

using Outcomes = std::map<std::pair<uint32_t, uint32_t>, uint32_t>;
Outcomes OutcomesOf(Litmus litmus, bool buffered) {
  Outcomes outcomes;
  for (const Schedule schedule : {Schedule::kTimed, Schedule::kRandom}) {
    for (uint64_t seed = 1; seed <= 300; ++seed) {
      Options options = OptionsFor(2, seed);
      options.chaos.on = true;
      options.chaos.schedule = schedule;
      options.chaos.store_buffer = buffered;
      Litmuses machine(options, {Boot, Ap, JustEoi});
      machine.state().litmus = litmus;
      machine.Run();
      ++outcomes[{machine.state().seen[0], machine.state().seen[1]}];
    }
  }
  return outcomes;
}

constexpr std::pair<uint32_t, uint32_t> kNobodySees = {0, 0};

TEST(StoreBuffer, BothMayMissTheOthersPlainStore) {
  EXPECT_GT(OutcomesOf(Litmus::kPlain, true)[kNobodySees], 0u);
  EXPECT_EQ(OutcomesOf(Litmus::kPlain, false)[kNobodySees], 0u) << "without a buffer";
}

TEST(StoreBuffer, NobodyMissesAStoreBehindAFence) {
  EXPECT_EQ(OutcomesOf(Litmus::kSeqCst, true)[kNobodySees], 0u);
  EXPECT_EQ(OutcomesOf(Litmus::kLockedBetween, true)[kNobodySees], 0u);
}

TEST(StoreBuffer, StoresBecomeVisibleInTheirOrder) {
  Outcomes outcomes = OutcomesOf(Litmus::kMessage, true);
  EXPECT_EQ((outcomes[{1, 0}]), 0u);
  EXPECT_GT((outcomes[{1, 1}]), 0u);
}

TEST(StoreBuffer, ACpuSeesItsOwnStoresAtOnce) {
  EXPECT_EQ(OutcomesOf(Litmus::kForwarding, true), (Outcomes{{{7, 7}, 600}}));
}

}  // namespace
}  // namespace sipi::sim
