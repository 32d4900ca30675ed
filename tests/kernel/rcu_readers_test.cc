// Grace periods and readers on simulated CPUs: none ends before a reader that was there at its
// beginning, and none waits for anything else.
#include "guest/scenario/random.h"
#include "tests/kernel/rcu_held.h"

namespace sipi {
namespace {

using rcu::ReadLock;
using rcu::ReadUnlock;

// One published element after the other; an old one is poisoned after its grace period. A reader
// that finds its element poisoned under its hands has seen a grace period that was too short.
struct Published {
  static constexpr uint32_t kElements = 16;
  platform::Atomic<uint32_t> current{0};
  uint32_t poisoned[kElements] = {};  // accessed atomically
  platform::Atomic<uint32_t> stop{0};
  platform::Atomic<uint32_t> running{0};
  platform::Atomic<uint32_t> reads{0};
  platform::Atomic<uint32_t> too_short{0};
  Completion done;

  platform::AtomicRef<uint32_t> Poisoned(uint32_t element) {
    return platform::AtomicRef<uint32_t>(poisoned[element]);
  }
};

struct ReaderThread {
  Published* shared = nullptr;
  Random random;
};

// Microseconds mostly; one in eight lasts several jiffies, and so grace periods' whole lives: its
// thread is preempted in it, scans find its CPU busy, ticks come.
void Read(Published& shared, Random& random) {
  const uint32_t look_every_us = random.OneIn(8) ? 100 + random.Below(4'000) : 7;
  ReadLock();
  const uint32_t element = shared.current.Load(std::memory_order_acquire);
  for (int i = 0; i < 8; ++i) {
    if (shared.Poisoned(element).Load(std::memory_order_relaxed) != 0)
      shared.too_short.FetchAdd(1, std::memory_order_relaxed);
    platform::DelayUs(look_every_us);
  }
  ReadUnlock();
  shared.reads.FetchAdd(1, std::memory_order_relaxed);
}

void ReadOn(void* argument) {
  auto& self = *static_cast<ReaderThread*>(argument);
  Published& shared = *self.shared;
  uint32_t round = 0;
  while (shared.stop.Load(std::memory_order_acquire) == 0) {
    Read(shared, self.random);
    CondResched();
    if (++round % 5 == 0) SleepUs(300);
  }
  if (shared.running.FetchAdd(~0u, std::memory_order_acq_rel) == 1)
    shared.done.Complete(*CurrentThread()->kernel);
}

// `update` waits for a grace period of some kind.
template <class Update>
void ReadersAgainst(Kernel& kernel, uint32_t readers, uint32_t updates, Update update) {
  auto& shared = *AllocateArray<Published>(kernel, 1);
  shared.running.Store(readers, std::memory_order_seq_cst);
  ReaderThread* threads = AllocateArray<ReaderThread>(kernel, readers);
  for (uint32_t i = 0; i < readers; ++i) {
    threads[i].shared = &shared;
    threads[i].random = Random(kernel.params->scenario_knobs.seed, i);
    SpawnThread(kernel,
                {.name = "reader/%", .index = i, .function = ReadOn, .argument = &threads[i]});
  }
  // Where readers are slow, until one of them has been through.
  constexpr uint32_t kMostUpdates = 100'000;
  const auto unread = [&shared] { return shared.reads.Load(std::memory_order_relaxed) == 0; };
  for (uint32_t i = 0; i < updates || (unread() && i < kMostUpdates); ++i) {
    const uint32_t old = shared.current.Load(std::memory_order_relaxed);
    const uint32_t next = (old + 1) % Published::kElements;
    shared.Poisoned(next).Store(0, std::memory_order_relaxed);
    shared.current.Store(next, std::memory_order_release);
    update();
    shared.Poisoned(old).Store(1, std::memory_order_seq_cst);
  }
  shared.stop.Store(1, std::memory_order_seq_cst);
  shared.done.Wait();
  EXPECT_EQ(shared.too_short.Load(std::memory_order_relaxed), 0u);
  EXPECT_GT(shared.reads.Load(std::memory_order_relaxed), 0u);
}

class ReaderFlavours : public testing::TestWithParam<RcuMode> {};

TEST_P(ReaderFlavours, NoGracePeriodEndsBeforeAReader) {
  ForSeeds(24, RcuOptions(5, GetParam()), [](Kernel& kernel) {
    ReadersAgainst(kernel, 8, 6, [&] { rcu::SynchronizeNormal(rcu::StateOf(kernel)); });
  });
}

TEST_P(ReaderFlavours, NorWhereTheKthreadWakes) {
  KernelOptions options = RcuOptions(4, GetParam());
  options.kernel.rcu_normal_wake_from_gp = 1;
  ForSeeds(12, options, [](Kernel& kernel) {
    ReadersAgainst(kernel, 6, 6, [&] { rcu::SynchronizeNormal(rcu::StateOf(kernel)); });
  });
}

TEST_P(ReaderFlavours, NorAnExpeditedOne) {
  ForSeeds(24, RcuOptions(5, GetParam()), [](Kernel& kernel) {
    ReadersAgainst(kernel, 8, 24, [&] { rcu::SynchronizeExpedited(kernel); });
  });
}

INSTANTIATE_TEST_SUITE_P(, ReaderFlavours, testing::ValuesIn(kRcuModes), NameOfMode);

// Trees of three and four levels with few CPUs.
TEST(Trees, OfSmallFanOut) {
  for (const uint32_t fanout : {2u, 3u}) {
    for (const uint32_t cpus : {8u, 13u, 27u}) {
      SCOPED_TRACE(testing::Message() << cpus << " CPUs, fan-out " << fanout);
      KernelOptions options = RcuOptions(cpus, kRcuModes[0]);
      options.kernel.rcu_fanout = static_cast<uint16_t>(fanout);
      options.kernel.rcu_fanout_leaf = 2;
      options.kernel.hz = 100;  // the slowest CPUs of some seeds need ms for a tick
      ForSeeds(3, options, [cpus](Kernel& kernel) {
        EXPECT_GE(kernel.rcu->levels, 3u);
        ReadersAgainst(kernel, cpus, 4, [&] { rcu::SynchronizeNormal(rcu::StateOf(kernel)); });
      });
    }
  }
}

// --- It waits for nothing else.

struct Waiter {
  Completion done;
  platform::Atomic<uint32_t> passed{0};
};

void SynchronizingThread(void* argument) {
  auto& waiter = *static_cast<Waiter*>(argument);
  Kernel& kernel = *CurrentThread()->kernel;
  rcu::SynchronizeNormal(rcu::StateOf(kernel));
  waiter.passed.Store(1, std::memory_order_seq_cst);
  waiter.done.Complete(kernel);
}

// A grace period does not end before `reader`, on CPU 1, has left its section.
void ExpectHeldUpBy(void (*reader)(void*)) {
  ForSeeds(20, RcuOptions(3, kRcuModes[0]), [reader](Kernel& kernel) {
    auto& held = *AllocateArray<Held>(kernel, 1);
    auto& waiter = *AllocateArray<Waiter>(kernel, 1);
    SpawnThread(kernel, {.name = "reader", .function = reader, .argument = &held, .cpu = 1});
    held.in.Wait();
    SpawnThread(kernel, {.name = "waiter", .function = SynchronizingThread, .argument = &waiter});
    SleepJiffies(30);
    EXPECT_EQ(waiter.passed.Load(std::memory_order_seq_cst), 0u);
    held.go.Complete(kernel);
    waiter.done.Wait();
    EXPECT_EQ(held.inside.Load(std::memory_order_seq_cst), 0u);
    held.out.Wait();
  });
}

TEST(BlockedReaders, HoldTheGracePeriodUpUntilTheyLeave) { ExpectHeldUpBy(HoldingReader); }

// The grace period waits for the CPU by now.
bool IsWaitedFor(Kernel& kernel, CpuNumber cpu) {
  const rcu::Data& data = rcu::DataOf(kernel, cpu);
  return (data.leaf->qsmask.Load(std::memory_order_acquire) & data.grpmask) != 0;
}

// Loses its CPU only when the grace period runs already.
void LateSleeper(void* argument) {
  auto& held = *static_cast<Held*>(argument);
  Kernel& kernel = *CurrentThread()->kernel;
  ReadLock();
  held.inside.Store(1, std::memory_order_seq_cst);
  held.in.Complete(kernel);
  while (!IsWaitedFor(kernel, CpuNumber(1))) platform::DelayUs(20);
  held.go.Wait();
  held.inside.Store(0, std::memory_order_seq_cst);
  ReadUnlock();
  held.out.Complete(kernel);
}

TEST(BlockedReaders, WhoLosesItsCpuInTheMiddleHoldsItUpToo) { ExpectHeldUpBy(LateSleeper); }

// A reader that keeps its CPU through many scans.
void LongReader(void* argument) {
  auto& held = *static_cast<Held*>(argument);
  Kernel& kernel = *CurrentThread()->kernel;
  ReadLock();
  held.inside.Store(1, std::memory_order_seq_cst);
  held.in.Complete(kernel);
  const auto jiffy_us = static_cast<uint32_t>(JiffyNs(kernel) / 1000);
  for (uint32_t i = 0; i < 40; ++i) platform::DelayUs(jiffy_us / 2);
  held.inside.Store(0, std::memory_order_seq_cst);
  ReadUnlock();
  held.out.Complete(kernel);
}

TEST_P(ReaderFlavours, ScansGiveNoCreditToAReader) {
  ForSeeds(12, RcuOptions(3, GetParam()), [](Kernel& kernel) {
    auto& held = *AllocateArray<Held>(kernel, 1);
    SpawnThread(kernel, {.name = "reader", .function = LongReader, .argument = &held, .cpu = 1});
    held.in.Wait();
    rcu::SynchronizeNormal(rcu::StateOf(kernel));
    EXPECT_EQ(held.inside.Load(std::memory_order_seq_cst), 0u);
    held.out.Wait();
  });
}

// A reader that begins after the grace period does not hold it up, though it never ends.
TEST(BlockedReaders, WhoComesLaterIsNotWaitedFor) {
  ForSeeds(20, RcuOptions(3, kRcuModes[0]), [](Kernel& kernel) {
    auto& early = *AllocateArray<Held>(kernel, 1);
    auto& late = *AllocateArray<Held>(kernel, 1);
    auto& waiter = *AllocateArray<Waiter>(kernel, 1);
    SpawnThread(kernel, {.name = "early", .function = HoldingReader, .argument = &early, .cpu = 1});
    early.in.Wait();
    SpawnThread(kernel, {.name = "waiter", .function = SynchronizingThread, .argument = &waiter});
    // Long enough for the grace period to have begun, and for CPU 2 to have been found idle.
    SleepJiffies(20);
    SpawnThread(kernel, {.name = "late", .function = HoldingReader, .argument = &late, .cpu = 2});
    late.in.Wait();
    early.go.Complete(kernel);
    waiter.done.Wait();
    EXPECT_EQ(late.inside.Load(std::memory_order_seq_cst), 1u);
    late.go.Complete(kernel);
    late.out.Wait();
    early.out.Wait();
  });
}

}  // namespace
}  // namespace sipi
