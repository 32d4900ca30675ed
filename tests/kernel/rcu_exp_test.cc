// Expedited grace periods, their nesting, and polled ones.
#include <gtest/gtest.h>

#include <utility>

#include "guest/kernel/rcu/read_side.h"
#include "guest/kernel/rcu/state.h"
#include "guest/kernel/sched/time.h"
#include "tests/kernel/kernel_machine.h"

namespace sipi {
namespace {

using abi::TraceEvent;

KernelOptions WithCpus(uint32_t cpus) {
  KernelOptions options;
  options.cpus = cpus;
  return options;
}

// --- A reader that stays as long as the test says.
struct Reader {
  Kernel* kernel = nullptr;
  platform::Atomic<uint32_t> inside{0};
  platform::Atomic<uint32_t> leave{0};
  platform::Atomic<uint32_t> left{0};
  Completion gone;
};

void ReadUntilTold(void* argument) {
  auto& reader = *static_cast<Reader*>(argument);
  rcu::ReadLock();
  reader.inside.Store(1, std::memory_order_seq_cst);
  const auto told = [](uint32_t value) { return value != 0; };
  EXPECT_TRUE(platform::SpinUntil(reader.leave.Ref(), told, platform::DeadlineInUs(20'000'000)));
  reader.left.Store(1, std::memory_order_seq_cst);
  rcu::ReadUnlock();
  reader.gone.Complete(*reader.kernel);
}

Reader& StartReader(Kernel& kernel, uint32_t cpu) {
  Reader& reader = *AllocateArray<Reader>(kernel, 1);
  reader.kernel = &kernel;
  SpawnThread(kernel,
              {.name = "reader", .function = ReadUntilTold, .argument = &reader, .cpu = cpu});
  const auto inside = [](uint32_t value) { return value != 0; };
  EXPECT_TRUE(platform::SpinUntil(reader.inside.Ref(), inside, platform::DeadlineInUs(1'000'000)));
  return reader;
}

void LetGo(void* argument) {
  static_cast<Reader*>(argument)->leave.Store(1, std::memory_order_seq_cst);
}

// Lets the reader go in two jiffies.
void LetGoLater(Kernel& kernel, Reader& reader) {
  Timer& timer = *AllocateArray<Timer>(kernel, 1);
  timer.function = LetGo;
  timer.argument = &reader;
  StartTimer(timer, platform::DeadlineInUs(8'000));
}

TEST(Expedited, WaitsForAReaderOnAnotherCpuAndForNothingElse) {
  ForSeeds(20, WithCpus(4), [](Kernel& kernel) {
    rcu::SynchronizeExpedited(kernel);  // nobody reads
    Reader& reader = StartReader(kernel, 2);
    LetGoLater(kernel, reader);
    rcu::SynchronizeExpedited(kernel);
    EXPECT_EQ(reader.left.Load(std::memory_order_seq_cst), 1u);
    reader.gone.Wait();
  });
}

TEST(Expedited, IsMuchFasterThanANormalOne) {
  KernelMachine machine(WithCpus(4));
  machine.Run([](Kernel& kernel) {
    SleepJiffies(10);
    const uint64_t begin = platform::NowNs();
    rcu::SynchronizeExpedited(kernel);
    EXPECT_LT(platform::NowNs() - begin, JiffyNs(kernel) / 2);
  });
  EXPECT_GE(machine.CountOf(TraceEvent::kExpBegin), 1u);
  EXPECT_EQ(machine.CountOf(TraceEvent::kExpBegin), machine.CountOf(TraceEvent::kExpEnd));
}

// Fan-outs of 2: three levels with eight CPUs; by workers and one after the other.
TEST(Expedited, WalksATreeOfThreeLevels) {
  for (const bool parallel : {false, true}) {
    KernelOptions options = WithCpus(8);
    options.kernel.rcu_fanout = 2;
    options.kernel.rcu_fanout_leaf = 2;
    options.kernel.rcu_exp_parallel = parallel ? 1 : 0;
    ForSeeds(10, options, [](Kernel& kernel) {
      EXPECT_EQ(kernel.rcu->levels, 3u);
      for (uint32_t cpu = 1; cpu < 8; cpu += 3) {
        Reader& reader = StartReader(kernel, cpu);
        LetGoLater(kernel, reader);
        rcu::SynchronizeExpedited(kernel);
        EXPECT_EQ(reader.left.Load(std::memory_order_seq_cst), 1u);
      }
    });
  }
}

// --- G13
TEST(Expedite, NestsReportsAnUnbalancedCallAndRcuNormalWins) {
  KernelMachine machine(WithCpus(2));
  machine.Run([](Kernel& kernel) {
    EXPECT_FALSE(rcu::GpIsExpedited(kernel));  // boot is over
    for (int i = 0; i < 3; ++i) rcu::ExpediteGp(kernel);
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(rcu::GpIsExpedited(kernel));
      rcu::UnexpediteGp(kernel);
    }
    EXPECT_FALSE(rcu::GpIsExpedited(kernel));
    rcu::UnexpediteGp(kernel);  // one too many
    EXPECT_FALSE(rcu::GpIsExpedited(kernel));
    rcu::ExpediteGp(kernel);  // and it still counts
    EXPECT_TRUE(rcu::GpIsExpedited(kernel));

    uint64_t before = rcu::ExpSeq(kernel);
    rcu::Synchronize(kernel);
    EXPECT_NE(rcu::ExpSeq(kernel), before);
    // rcu_normal beside it.
    kernel.rcu->normal_knob.Store(1, std::memory_order_seq_cst);
    EXPECT_TRUE(rcu::GpIsNormal(kernel));
    before = rcu::ExpSeq(kernel);
    const uint64_t normal = rcu::GpSeq(kernel);
    rcu::Synchronize(kernel);
    rcu::SynchronizeExpedited(kernel);
    EXPECT_EQ(rcu::ExpSeq(kernel), before);
    EXPECT_NE(rcu::GpSeq(kernel), normal);
    kernel.rcu->normal_knob.Store(0, std::memory_order_seq_cst);
    rcu::UnexpediteGp(kernel);
  });
  uint32_t unbalanced = 0;
  for (uint32_t cpu = 0; cpu < 2; ++cpu) {
    for (const abi::TraceRecord& record : machine.Trace(cpu)) {
      if (record.event == TraceEvent::kExpediteNesting && record.value == ~0u) ++unbalanced;
    }
  }
  EXPECT_EQ(unbalanced, 1u);
}

// --- Cookies
TEST(Polled, EveryKindOfCookieIsDoneAfterItsGracePeriodAndNotBefore) {
  ForSeeds(20, WithCpus(3), [](Kernel& kernel) {
    Reader& reader = StartReader(kernel, 1);
    const rcu::Cookie cookies[] = {rcu::GetState(kernel), rcu::StartPoll(kernel),
                                   rcu::StartPollExpedited(kernel)};
    const rcu::FullCookie full[] = {rcu::GetStateFull(kernel), rcu::StartPollFull(kernel),
                                    rcu::StartPollExpeditedFull(kernel)};
    SleepJiffies(5);
    for (const rcu::Cookie cookie : cookies) EXPECT_FALSE(rcu::Poll(kernel, cookie));
    for (const rcu::FullCookie& cookie : full) EXPECT_FALSE(rcu::PollFull(kernel, cookie));
    LetGo(&reader);
    reader.gone.Wait();
    for (const rcu::Cookie cookie : cookies) {
      for (int i = 0; i < 100 && !rcu::Poll(kernel, cookie); ++i) SleepJiffies(1);
      EXPECT_TRUE(rcu::Poll(kernel, cookie));
    }
    for (const rcu::FullCookie& cookie : full) {
      for (int i = 0; i < 100 && !rcu::PollFull(kernel, cookie); ++i) SleepJiffies(1);
      EXPECT_TRUE(rcu::PollFull(kernel, cookie));
    }
    // Those that were asked for and are not needed any more.
    const auto counted = [&kernel] { return rcu::GpSeq(kernel) + rcu::ExpSeq(kernel); };
    uint64_t before = counted();
    for (uint64_t then = ~before; then != before;) {
      SleepJiffies(20);
      then = std::exchange(before, counted());
    }
    rcu::CondSynchronize(kernel, cookies[0]);
    rcu::CondSynchronizeExpeditedFull(kernel, full[0]);
    EXPECT_EQ(counted(), before);
  });
}

// A CPU that comes up between a grace period's scan for CPUs and its set-up of the tree is not
// waited for: a cookie that it takes there is done by the next one only. The state of the counters
// at that moment, made by hand.
TEST(Polled, AFullCookieDoesNotCountOnAGracePeriodThatHasBegun) {
  KernelMachine machine(WithCpus(2));
  machine.Run([](Kernel& kernel) {
    IrqGuard still;
    rcu::State& state = *kernel.rcu;
    const uint64_t idle = state.gp_seq.Load(std::memory_order_relaxed);
    ASSERT_EQ(rcu::SeqState(idle), 0u);
    state.gp_seq.Store(rcu::SeqStarted(idle), std::memory_order_seq_cst);
    const rcu::FullCookie cookie = rcu::GetStateFull(kernel);
    const uint64_t root = state.root().gp_seq.Load(std::memory_order_relaxed);
    const auto root_is = [&state](uint64_t seq) {
      state.root().gp_seq.Store(seq, std::memory_order_seq_cst);
    };
    root_is(rcu::SeqEnded(idle + 1));
    EXPECT_FALSE(rcu::PollFull(kernel, cookie));
    root_is(rcu::SeqEnded(rcu::SeqEnded(idle + 1) + 1));
    EXPECT_TRUE(rcu::PollFull(kernel, cookie));
    root_is(root);
    state.gp_seq.Store(idle, std::memory_order_seq_cst);
  });
}

}  // namespace
}  // namespace sipi
