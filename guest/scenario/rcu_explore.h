// What `sipi explore --scenario=rcu` runs: a few readers, updaters and a hotplug thread for a
// handful of rounds each, small enough that a schedule costs milliseconds of the host, and strict:
// the first thing that must not be is a panic that says what it is. The simulator looks for the
// rest (a run that does not end, CPUs that did not come back, grace periods that took too long).
//
// An updater owns a pointer and its elements. It replaces the element, waits for a grace period in
// one of all ways there are, and marks the old one freed; a reader that holds a freed element has
// been overlooked. A reader also takes cookies: none may be done before its section ends.
#pragma once

#include "guest/kernel/rcu/rcu.h"
#include "guest/scenario/crew.h"
#include "guest/scenario/random.h"

namespace sipi::explore {

inline constexpr uint32_t kElements = 6;
inline constexpr uint32_t kPointers = 2;

struct Pointer;
struct Element : rcu::Head {
  Pointer* pointer = nullptr;
  platform::Atomic<uint32_t> freed{0};
};

struct WaitedCall : rcu::Head {
  Pointer* pointer = nullptr;
};

// One updater's.
struct alignas(64) Pointer {
  platform::Atomic<uint32_t> at{
      0};  // what readers find: a plain store, so that RCU has to order it
  Element elements[kElements];
  platform::Atomic<uint32_t> queued{0};  // callbacks
  platform::Atomic<uint32_t> run{0};
  Completion called;
  WaitedCall call;  // of a callback that is waited for
};

struct Explore {
  Kernel* kernel = nullptr;
  Crew* crew = nullptr;
  uint32_t rounds = 1;
  Pointer* pointers = nullptr;  // [kPointers]
  platform::Atomic<uint32_t> updates{0};
};

struct Actor : CrewMember {
  Explore* explore = nullptr;
  Random random;
};

// --- Readers (rcu_explore_read.cc).
// One section. Any context; with `delays` it takes its time.
void ReadOnce(Explore& explore, Random& random, bool delays);
void Read(CrewMember& member);

// --- Updaters (rcu_explore_update.cc). One thread for each pointer.
void Update(CrewMember& member);
// After a barrier: every callback of this pointer has run.
void CheckCallbacks(Pointer& pointer);

// --- Others (rcu_explore.cc).
void SleepSomewhat(Random& random, uint32_t max_us);

}  // namespace sipi::explore

namespace sipi {

// In the thread "init", all CPUs up; returns when its threads have ended.
void RunRcuExplore(Kernel& kernel);
// Case G8's script (rcu_explore_exp.cc): one expedited grace period against one CPU that goes off
// and on again.
void RunExpHotplug(Kernel& kernel);

}  // namespace sipi
