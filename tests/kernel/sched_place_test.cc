// Where threads run: affinity, placement, balance, and a CPU that they have to leave.
#include "guest/kernel/sched/run_queue.h"
#include "guest/kernel/sched/time.h"
#include "tests/kernel/kernel_machine.h"

namespace sipi {
namespace {

uint32_t Here() {
  PreemptGuard guard;
  return platform::ThisCpu().cpu.value;
}

struct Place {
  Completion done;
  Completion go;
  WaitQueue gate;
  platform::Atomic<uint32_t> stop{0};
  platform::Atomic<uint32_t> alive{0};
  uint32_t at[16] = {};
  platform::Atomic<uint32_t> next{0};
};

Place& NewPlace(Kernel& kernel) { return *AllocateArray<Place>(kernel, 1); }

void Wander(void* argument) {
  auto& place = *static_cast<Place*>(argument);
  Thread& self = *CurrentThread();
  for (const uint32_t cpu : {2u, 0u, 1u, 2u, 1u}) {
    EXPECT_TRUE(SetAffinity(self, cpu));
    EXPECT_EQ(Here(), cpu);
    YieldThread();
    SleepUs(10);
    EXPECT_EQ(Here(), cpu);
  }
  EXPECT_TRUE(SetAffinity(self, Thread::kAnyCpu));
  place.done.Complete(*self.kernel);
}

TEST(SchedPlace, AThreadIsWhereItIsBoundTo) {
  ForSeeds(60, {.cpus = 3}, [](Kernel& kernel) {
    Place& place = NewPlace(kernel);
    for (int i = 0; i < 4; ++i) {
      SpawnThread(kernel, {.name = "wanderer", .function = Wander, .argument = &place});
    }
    for (int i = 0; i < 4; ++i) place.done.Wait();
  });
}

void SpinUntilStopped(void* argument) {
  auto& place = *static_cast<Place*>(argument);
  while (place.stop.Load(std::memory_order_acquire) == 0) {
    place.alive.FetchAdd(1, std::memory_order_relaxed);
    place.at[0] = Here();
    platform::DelayUs(5);
    CondResched();
  }
  place.done.Complete(*CurrentThread()->kernel);
}

TEST(SchedPlace, ARunningAndASleepingThreadAreBoundByAnother) {
  ForSeeds(40, {.cpus = 3}, [](Kernel& kernel) {
    Place& place = NewPlace(kernel);
    Thread& spinner =
        SpawnThread(kernel, {.name = "spinner", .function = SpinUntilStopped, .argument = &place});
    for (const uint32_t cpu : {2u, 1u, 2u}) {
      EXPECT_TRUE(SetAffinity(spinner, cpu));
      SleepUs(200'000);  // longer than any chaos
      EXPECT_EQ(place.at[0], cpu);
    }
    place.stop.Store(1, std::memory_order_release);
    place.done.Wait();
  });
}

TEST(SchedPlace, AnInactiveCpuTakesNobody) {
  KernelMachine machine({.cpus = 2});
  machine.Run([](Kernel& kernel) {
    RunQueue& queue = QueueOf(kernel, 1);
    {
      IrqSpinGuard guard(kernel, queue.lock);
      queue.active = false;
    }
    EXPECT_FALSE(SetAffinity(*CurrentThread(), 1));
    EXPECT_EQ(Here(), 0u);
  });
}

void NoteWhere(void* argument) {
  auto& place = *static_cast<Place*>(argument);
  place.at[place.next.FetchAdd(1, std::memory_order_seq_cst)] = Here();
  platform::DelayUs(4000);
  place.done.Complete(*CurrentThread()->kernel);
}

TEST(SchedPlace, EachThreadGetsACpuOfItsOwnWhileThereAreIdleOnes) {
  KernelMachine machine({.cpus = 8});
  machine.Run([](Kernel& kernel) {
    Place& place = NewPlace(kernel);
    for (uint32_t i = 0; i < 7; ++i) {
      SpawnThread(kernel, {.name = "note", .function = NoteWhere, .argument = &place});
      platform::DelayUs(20);
    }
    for (uint32_t i = 0; i < 7; ++i) place.done.Wait();
    uint32_t used = 0;
    for (uint32_t i = 0; i < 7; ++i) used |= 1u << place.at[i];
    EXPECT_EQ(used, 0xfeu);  // this thread keeps CPU 0 busy
  });
}

// A thread that works for a while by the step, so that what it does counts and not how long it
// takes.
void Work20Ms(void* argument) {
  auto& place = *static_cast<Place*>(argument);
  for (int i = 0; i < 200; ++i) {
    IrqGuard irq;  // no interrupt is counted as work
    platform::DelayUs(100);
  }
  place.done.Complete(*CurrentThread()->kernel);
}

TEST(SchedPlace, RunnableThreadsDoNotPileUpOnOneCpu) {
  KernelMachine machine({.cpus = 4});
  machine.Run([](Kernel& kernel) {
    Place& place = NewPlace(kernel);
    const uint64_t begin = platform::NowNs();
    for (uint32_t i = 0; i < 12; ++i) {
      SpawnThread(kernel, {.name = "work", .function = Work20Ms, .argument = &place});
    }
    for (uint32_t i = 0; i < 12; ++i) place.done.Wait();
    // 240 ms of work on four CPUs: 60 if evenly spread, 80 with one thread too many somewhere.
    EXPECT_LT(platform::NowNs() - begin, 85'000'000u);
  });
}

void Leave(void* argument) {
  auto& place = *static_cast<Place*>(argument);
  place.go.Wait();
  SchedDeactivateCpu(platform::ThisCpu());
  place.done.Complete(*CurrentThread()->kernel);
  place.go.Wait();
  SchedActivateCpu(platform::ThisCpu());
  place.done.Complete(*CurrentThread()->kernel);
}

struct Guest {
  Place* place;
  Thread* thread;
  uint32_t bound;
  platform::Atomic<uint32_t> rounds{0};
  platform::Atomic<uint32_t> cpu{0};
};

void BeAGuest(void* argument) {
  auto& guest = *static_cast<Guest*>(argument);
  if (guest.bound != Thread::kAnyCpu) {
    EXPECT_TRUE(SetAffinity(*CurrentThread(), guest.bound));
  }
  while (guest.place->stop.Load(std::memory_order_acquire) == 0) {
    platform::DelayUs(20);
    const bool sleeps = guest.rounds.FetchAdd(1, std::memory_order_relaxed) % 4 == 0;
    if (sleeps) SleepUs(30);
    guest.cpu.Store(Here(), std::memory_order_relaxed);
    CondResched();
  }
  guest.place->done.Complete(*CurrentThread()->kernel);
}

// Bound and unbound threads, asleep, running and preempted, leave a CPU that goes offline; its own
// stay; all go on.
TEST(SchedPlace, EverybodyLeavesACpuThatIsDeactivatedButItsOwn) {
  ForSeeds(60, {.cpus = 3}, [](Kernel& kernel) {
    constexpr uint32_t kGuests = 6;
    Place& place = NewPlace(kernel);
    auto* const guests = AllocateArray<Guest>(kernel, kGuests);
    SpawnThread(kernel, {.name = "leaver",
                         .function = Leave,
                         .argument = &place,
                         .cpu = 1,
                         .priority = Priority::kFifo});
    for (uint32_t i = 0; i < kGuests; ++i) {
      guests[i].place = &place;
      guests[i].bound = i < 3 ? 1 : Thread::kAnyCpu;
      guests[i].thread = &SpawnThread(
          kernel, {.name = "guest/%", .index = i, .function = BeAGuest, .argument = &guests[i]});
    }
    SleepUs(2000);
    place.go.Complete(kernel);
    place.done.Wait();
    uint32_t before[kGuests];
    SleepUs(400'000);  // longer than any chaos
    for (uint32_t i = 0; i < kGuests; ++i) {
      before[i] = guests[i].rounds.Load(std::memory_order_relaxed);
      EXPECT_NE(guests[i].cpu.Load(std::memory_order_relaxed), 1u) << i;
    }
    SleepUs(400'000);
    for (uint32_t i = 0; i < kGuests; ++i) {
      EXPECT_NE(guests[i].rounds.Load(std::memory_order_relaxed), before[i]) << i;
      EXPECT_NE(guests[i].cpu.Load(std::memory_order_relaxed), 1u) << i;
    }
    place.go.Complete(kernel);  // the leaver has stayed, and hears it
    place.done.Wait();
    place.stop.Store(1, std::memory_order_release);
    for (uint32_t i = 0; i < kGuests; ++i) place.done.Wait();
    EXPECT_TRUE(SetAffinity(*CurrentThread(), 1));
    EXPECT_EQ(Here(), 1u);
  });
}

}  // namespace
}  // namespace sipi
