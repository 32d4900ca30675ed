// rcutorture: readers that look closely, an updater whose elements go through a pipe of grace
// periods, fake writers that ask for grace periods in every way there is, and what disturbs them:
// CPUs that go off and on, preemption, expediting, floods of callbacks, barriers.
//
// The scheme is that of Linux's rcutorture (kernel/rcu/rcutorture.c): an element that the updater
// has taken out moves on by one stage with each grace period. A reader that found it may see it
// leave (stage 1), but never see it move on (stage 2): its section would have to have been there
// before a grace period began and after it ended. What each file checks stands at its head; what it
// found goes into its thread's Tally, and all tallies into abi::TorturePage at the end.
#pragma once

#include "guest/abi/scenario_results.h"
#include "guest/kernel/rcu/gp_seq.h"
#include "guest/kernel/rcu/rcu.h"
#include "guest/scenario/crew.h"
#include "guest/scenario/random.h"

namespace sipi::torture {

inline constexpr uint32_t kPipeStages = 10;  // RCU_TORTURE_PIPE_LEN
inline constexpr uint32_t kElements = 10 * kPipeStages;
inline constexpr uint32_t kNoElement = ~0u;

struct Torture;

// What the readers look at.
struct Element : rcu::Head {
  Torture* torture = nullptr;
  platform::Atomic<uint32_t> stage{0};  // grace periods since it was taken out, plus one
  platform::Atomic<uint32_t> alive{0};  // 0: it is free, nobody may find it
  uint32_t next_free = kNoElement;      // guarded by Torture::pool_lock
};

// One thread's findings; its own.
struct Tally : abi::TortureTally {
  uint32_t traced = 0;  // failures in the timeline: the first few are enough
};

// A thread of the torture.
struct Actor : CrewMember {
  Torture* torture = nullptr;
  Random random;
  Tally tally = {};
};

// One reader's marks for the ordering check (torture_order.cc).
struct alignas(64) OrderSlot {
  platform::Atomic<uint64_t> begun{0};
  platform::Atomic<uint64_t> done{0};
};

// Callbacks, by the CPU on which that happened.
struct alignas(64) CallbackCount {
  platform::Atomic<uint64_t> queued{0};
  platform::Atomic<uint64_t> run{0};
};

struct StageCount {
  platform::Atomic<uint64_t> elements{0};
};

struct Torture {
  Kernel* kernel = nullptr;
  Crew* crew = nullptr;
  abi::TorturePage* page = nullptr;
  uint32_t cpus = 1;
  uint32_t readers = 1;
  uint32_t fake_writers = 0;
  uint64_t duration_us = 0;

  Element* elements = nullptr;
  platform::Atomic<uint32_t> current{kNoElement};  // what readers find
  SpinLock pool_lock;                              // taken in callbacks: with interrupts off
  uint32_t first_free = kNoElement;
  StageCount freed[kPipeStages + 1];

  // torture_order.cc
  platform::Atomic<uint64_t> order_generation{1};
  platform::Atomic<uint64_t> order_passed{0};  // a grace period that began after it has ended
  OrderSlot* order_slots = nullptr;            // [readers]

  CallbackCount* callbacks = nullptr;  // [cpus]

  bool stopping() { return crew->stopping(); }
};

// Grace periods that have ended since boot; the sequences wrap, their differences do not.
inline uint64_t NormalGps(Kernel& kernel) {
  return rcu::SeqCounter(rcu::GpSeq(kernel) - rcu::kInitialGpSeq);
}
inline uint64_t ExpeditedGps(Kernel& kernel) {
  return rcu::SeqCounter(rcu::ExpSeq(kernel) - rcu::kInitialExpSeq);
}

// A check has failed. Any context, for a tally of the caller's own.
void Fail(Tally& tally, abi::TortureCheck check);

// rcu::Call, counted; and what each of its callbacks does first. Any context.
void QueueCallback(Torture& torture, rcu::Head& head, void (*function)(rcu::Head&));
void CountCallback(Torture& torture);

// What no thread counts for itself goes into the page: what a run that is cut short will have left.
// By one thread, or after all have ended.
void HandOver(Torture& torture);

// Sleeps for up to max_us, at random.
void RandomSleep(Actor& self, uint32_t max_us);
// The running thread moves to a CPU at random, where that is online, and may leave it again.
void RandomMove(Actor& self);

// Makes a thread of the torture, in the kernel's memory. Thread context.
template <class Member = Actor>
Member& MakeActor(Torture& torture, uint32_t stream, void (*run)(CrewMember&)) {
  Kernel& kernel = *torture.kernel;
  auto& actor = *AllocateArray<Member>(kernel, 1);
  actor.body = run;
  actor.torture = &torture;
  actor.random = Random(kernel.params->scenario_knobs.seed, stream);
  actor.tally.next_gpa = torture.page->tallies_gpa;
  torture.page->tallies_gpa = reinterpret_cast<uint64_t>(&actor.tally);
  return actor;
}

// What makes the threads of each kind.
void SpawnReaders(Torture& torture);
void SpawnWriter(Torture& torture);
void SpawnFakeWriters(Torture& torture);
void SpawnOrderChecker(Torture& torture);
void SpawnBarrierTesters(Torture& torture);
void SpawnFlood(Torture& torture);
void SpawnOnOff(Torture& torture);
void SpawnPreempter(Torture& torture);

// --- Elements (torture_pipe.cc).
void MakeElements(Torture& torture);
// kNoElement: none is free.
uint32_t TakeElement(Torture& torture);
// One more grace period has passed. True: it was the last, the element is free again.
bool AdvanceElement(Torture& torture, Element& element);

// --- Ways to wait for a grace period (torture_update.cc). Thread context; checks its cookies.
void CountUpdate(Tally& tally, abi::TortureUpdate kind);
void WaitForGracePeriod(Actor& self, abi::TortureUpdate kind);
abi::TortureUpdate RandomUpdate(Random& random);

// --- Ordering (torture_order.cc): a reader's marks, at its section's begin and end.
void OrderBegin(Torture& torture, uint32_t reader);
void OrderEnd(Torture& torture, uint32_t reader);
// Looks at another reader's marks. Outside of sections.
void CheckOneOrder(Torture& torture, Tally& tally, uint32_t reader);

}  // namespace sipi::torture
