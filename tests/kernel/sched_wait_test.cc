// Mutexes, wait queues, completions, workers.
#include "guest/kernel/sched/time.h"
#include "guest/kernel/sched/wait.h"
#include "guest/kernel/sched/worker.h"
#include "tests/kernel/kernel_machine.h"

namespace sipi {
namespace {

struct Shared {
  Mutex mutex;
  WaitQueue queue;
  Completion done;
  Completion tokens;
  platform::Atomic<uint32_t> word{0};
  platform::Atomic<uint32_t> taken{0};
  uint32_t plain = 0;
  uint32_t inside = 0;
  uint32_t per_thread = 0;
};

Shared& NewShared(Kernel& kernel) { return *AllocateArray<Shared>(kernel, 1); }

void SpawnMany(Kernel& kernel, uint32_t count, void (*function)(void*), Shared& shared) {
  for (uint32_t i = 0; i < count; ++i) {
    SpawnThread(kernel, {.name = "test/%", .index = i, .function = function, .argument = &shared});
  }
}

void WaitForAll(Shared& shared, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) shared.done.Wait();
}

void Increment(void* argument) {
  auto& shared = *static_cast<Shared*>(argument);
  Kernel& kernel = *CurrentThread()->kernel;
  for (uint32_t i = 0; i < shared.per_thread; ++i) {
    shared.mutex.Lock();
    EXPECT_EQ(++shared.inside, 1u);
    const uint32_t before = shared.plain;
    // Steps at which another thread may come.
    for (int j = 0; j < 3; ++j) shared.word.FetchAdd(1, std::memory_order_relaxed);
    if (i % 4 == 0) YieldThread();
    shared.plain = before + 1;
    --shared.inside;
    shared.mutex.Unlock();
  }
  shared.done.Complete(kernel);
}

TEST(SchedWait, AMutexKeepsOthersOut) {
  ForSeeds(60, {.cpus = 3}, [](Kernel& kernel) {
    Shared& shared = NewShared(kernel);
    shared.per_thread = 8;
    SpawnMany(kernel, 5, Increment, shared);
    WaitForAll(shared, 5);
    EXPECT_EQ(shared.plain, 40u);
    EXPECT_TRUE(shared.mutex.TryLock());
    EXPECT_FALSE(shared.mutex.TryLock());
  });
}

void LockOnce(void* argument) {
  auto& shared = *static_cast<Shared*>(argument);
  shared.word.FetchAdd(1, std::memory_order_seq_cst);
  shared.mutex.Lock();
  ++shared.plain;
  shared.mutex.Unlock();
  shared.done.Complete(*CurrentThread()->kernel);
}

// Whoever unlocks it and wants it again at once comes after those that wait already, even if none
// of them has run since.
TEST(SchedWait, AMutexGoesToWhoWaitsLongest) {
  KernelMachine machine({.cpus = 1});
  machine.Run([](Kernel& kernel) {
    Shared& shared = NewShared(kernel);
    shared.mutex.Lock();
    SpawnMany(kernel, 3, LockOnce, shared);
    // All of them have begun, and the only CPU is here again: they sleep.
    while (shared.word.Load(std::memory_order_seq_cst) != 3) YieldThread();
    YieldThread();
    shared.mutex.Unlock();
    EXPECT_FALSE(shared.mutex.TryLock());
    shared.mutex.Lock();
    EXPECT_EQ(shared.plain, 3u);
    shared.mutex.Unlock();
    WaitForAll(shared, 3);
    EXPECT_TRUE(shared.mutex.TryLock());
  });
}

void WaitForWord(void* argument) {
  auto& shared = *static_cast<Shared*>(argument);
  shared.queue.Wait([&] { return shared.word.Load(std::memory_order_acquire) != 0; });
  shared.done.Complete(*CurrentThread()->kernel);
}

TEST(SchedWait, WakeAllWakesAll) {
  ForSeeds(60, {.cpus = 4}, [](Kernel& kernel) {
    Shared& shared = NewShared(kernel);
    SpawnMany(kernel, 9, WaitForWord, shared);
    // A plain store that may still stand in a store buffer: waking is what makes it seen.
    shared.word.Store(1, std::memory_order_release);
    shared.queue.WakeAll(kernel);
    WaitForAll(shared, 9);
    EXPECT_FALSE(shared.queue.WakeOne(kernel));
  });
}

void TakeOneToken(void* argument) {
  auto& shared = *static_cast<Shared*>(argument);
  shared.tokens.Wait();
  shared.taken.FetchAdd(1, std::memory_order_seq_cst);
  shared.done.Complete(*CurrentThread()->kernel);
}

TEST(SchedWait, ACompletionLetsAsManyThroughAsItWasCompletedTimes) {
  KernelMachine machine({.cpus = 4});
  machine.Run([](Kernel& kernel) {
    Shared& shared = NewShared(kernel);
    SpawnMany(kernel, 6, TakeOneToken, shared);
    for (uint32_t i = 1; i <= 3; ++i) {
      shared.tokens.Complete(kernel);
      SleepJiffies(2);
      EXPECT_EQ(shared.taken.Load(std::memory_order_seq_cst), i);
    }
    EXPECT_FALSE(shared.tokens.WaitUntil(platform::DeadlineInUs(10'000)));
    shared.tokens.CompleteAll(kernel);
    WaitForAll(shared, 6);
    shared.tokens.Wait();
    shared.tokens.Reset();
    EXPECT_FALSE(shared.tokens.WaitUntil(platform::DeadlineInUs(1000)));
  });
}

// Waits with time-outs that come about when the tokens do: none may be lost on the way.
void TakeTokensInAHurry(void* argument) {
  auto& shared = *static_cast<Shared*>(argument);
  for (uint32_t left = shared.per_thread; left != 0;) {
    if (!shared.tokens.WaitUntil(platform::DeadlineInUs(30 + 7 * left))) continue;
    shared.taken.FetchAdd(1, std::memory_order_seq_cst);
    --left;
  }
  shared.done.Complete(*CurrentThread()->kernel);
}

TEST(SchedWait, NoTokenIsLostToATimeOut) {
  ForSeeds(60, {.cpus = 3}, [](Kernel& kernel) {
    Shared& shared = NewShared(kernel);
    shared.per_thread = 6;
    SpawnMany(kernel, 3, TakeTokensInAHurry, shared);
    for (uint32_t i = 0; i < 18; ++i) {
      platform::DelayUs(20 + i * 5);
      shared.tokens.Complete(kernel);
    }
    WaitForAll(shared, 3);
    EXPECT_EQ(shared.taken.Load(std::memory_order_seq_cst), 18u);
    EXPECT_FALSE(shared.tokens.WaitUntil(platform::DeadlineInUs(100)));
  });
}

// Who is first in the queue is taken out of it just as its deadline is over, and goes without
// looking again: the one behind it must be woken.
struct Race {
  WaitQueue queue;
  platform::Atomic<uint32_t> timed_queued{0};
  platform::Atomic<uint32_t> untimed_queued{0};
  platform::Atomic<uint32_t> token{0};
  Completion done;
};

void WaitWithoutDeadline(void* argument) {
  auto& race = *static_cast<Race*>(argument);
  EXPECT_TRUE(SpinForIt(race.timed_queued));
  uint32_t looks = 0;
  race.queue.Wait([&] {
    if (++looks == 2) race.untimed_queued.Store(1, std::memory_order_seq_cst);
    return race.token.Load(std::memory_order_seq_cst) != 0;
  });
  race.done.Complete(*CurrentThread()->kernel);
}

TEST(SchedWait, ATimedWaiterDoesNotSwallowAWakeUp) {
  KernelMachine machine({.cpus = 2});
  machine.Run([](Kernel& kernel) {
    auto& race = *AllocateArray<Race>(kernel, 1);
    SpawnThread(kernel,
                {.name = "untimed", .function = WaitWithoutDeadline, .argument = &race, .cpu = 1});
    uint32_t looks = 0;
    const auto late = [&] {
      if (++looks != 2) return false;  // before it is in the queue
      race.timed_queued.Store(1, std::memory_order_seq_cst);
      EXPECT_TRUE(SpinForIt(race.untimed_queued));
      race.token.Store(1, std::memory_order_seq_cst);
      EXPECT_TRUE(race.queue.WakeOne(kernel));
      return false;
    };
    EXPECT_FALSE(race.queue.WaitUntil(late, platform::DeadlineInUs(1)));
    EXPECT_EQ(looks, 2u);
    race.done.Wait();
  });
}

struct Counted {
  Work work;  // first: the function gets it
  platform::Atomic<uint32_t> runs{0};
  platform::Atomic<uint32_t> wanted{0};
};

void CountRun(Work& work) {
  auto& counted = reinterpret_cast<Counted&>(work);
  // What was asked for before the item was queued is seen.
  EXPECT_NE(counted.wanted.Load(std::memory_order_acquire), 0u);
  counted.runs.FetchAdd(1, std::memory_order_seq_cst);
  platform::DelayUs(5);
}

TEST(SchedWait, AWorkerDoesWhatIsQueuedAndFlushWaitsForIt) {
  ForSeeds(60, {.cpus = 3}, [](Kernel& kernel) {
    auto& worker = *AllocateArray<Worker>(kernel, 1);
    auto* const items = AllocateArray<Counted>(kernel, 4);
    StartWorker(kernel, worker, {.name = "worker"});
    uint32_t queued[4] = {};
    for (uint32_t i = 0; i < 24; ++i) {
      Counted& item = items[i % 4];
      item.work.function = CountRun;
      item.wanted.FetchAdd(1, std::memory_order_seq_cst);
      if (QueueWork(kernel, worker, item.work)) ++queued[i % 4];
      if (i % 5 == 0) {
        FlushWork(kernel, worker, item.work);
        EXPECT_EQ(item.runs.Load(std::memory_order_seq_cst), queued[i % 4]);
      }
    }
    for (uint32_t i = 0; i < 4; ++i) {
      FlushWork(kernel, worker, items[i].work);
      EXPECT_EQ(items[i].runs.Load(std::memory_order_seq_cst), queued[i]);
    }
  });
}

}  // namespace
}  // namespace sipi
