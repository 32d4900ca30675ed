// What `sipi explore --scenario=rcu` runs: a few readers, updaters and a hotplug thread for a
// handful of rounds each, small enough that a schedule costs milliseconds of the host, and strict:
// the first thing that must not be is a panic that says what it is. The simulator looks for the
// rest (a run that does not end, CPUs that did not come back, grace periods that took too long).
//
// An updater owns a pointer and its elements. It replaces the element, waits for a grace period in
// one of all ways there are, and marks the old one freed; a reader that holds a freed element has
// been overlooked. A reader also takes cookies: none may be done before its section ends.
//
// So that they meet: now and then an updater or a reader waits until the CPU that is on its way has
// come to a step of the table; and that CPU itself reads and queues a callback in the middle of its
// STARTING section, where nothing else runs there any more, or yet.
#pragma once

#include "guest/kernel/rcu/rcu.h"
#include "guest/scenario/crew.h"
#include "guest/scenario/random.h"

namespace sipi::explore {

inline constexpr uint32_t kElements = 6;
inline constexpr uint32_t kPointers = 2;
inline constexpr uint32_t kRemoteCalls = 8;

// A plugged step's, in the STARTING section: RCU knows of the CPU (ap:offline) and the idle thread
// is there, and on the way down function calls do not reach it any more.
inline constexpr auto kMoverReads = static_cast<abi::CpuhpState>(89);

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
  platform::Atomic<uint32_t> queued{0};  // callbacks; counted when they are
  platform::Atomic<uint32_t> run{0};
  Completion called;
  WaitedCall call;  // of a callback that is waited for
};

// A callback that nobody owns: queued in interrupts and by CPUs on their way down.
struct RemoteCall : rcu::Head {
  platform::Atomic<uint32_t> busy{0};
  platform::Atomic<uint32_t> queued{0};  // counted when it is
  platform::Atomic<uint32_t> run{0};
};

struct Explore {
  Kernel* kernel = nullptr;
  Crew* crew = nullptr;
  uint32_t rounds = 1;
  Pointer* pointers = nullptr;  // [kPointers]
  platform::Atomic<uint32_t> updates{0};
  RemoteCall remote[kRemoteCalls];
  // The hotplug operation that runs: 2 * CPU, plus 1 on the way up; 0: none.
  platform::Atomic<uint32_t> moving{0};
  Random mover;  // of the CPU that moves, and of the thread that has it do so
};

// A reader in an interrupt, which nobody waits for: a caller that did would itself hold grace
// periods up meanwhile.
struct InterruptRead {
  platform::Atomic<uint32_t> busy{0};
  Explore* explore = nullptr;
  Random random;
};

struct Actor : CrewMember {
  Explore* explore = nullptr;
  Random random;
  InterruptRead interrupt;
};

// --- Readers (rcu_explore_read.cc).
// One section. Any context; with `delays` it takes its time.
void ReadOnce(Explore& explore, Random& random, bool delays);
void Read(CrewMember& member);

// --- Updaters (rcu_explore_update.cc). One thread for each pointer.
void Update(CrewMember& member);
// A callback on this CPU, if one is free. Any context.
void QueueRemote(Explore& explore);
// rcu_barrier(), after which whatever had been queued before it has run. Thread context.
void CheckedBarrier(Explore& explore);
// Likewise when nobody queues any more: each exactly once.
void CheckCallbacks(Explore& explore);

// --- Hotplug (rcu_explore_hotplug.cc).
void OnOff(CrewMember& member);
void PlugMoverIn(Explore& explore);
// Returns when a CPU that is on its way has come to a random step of the table, or none comes there
// soon. Thread context.
void MeetHotplug(Actor& self);
// How far a CPU has come on its way to a state: up to kBringupCpu it is the control CPU's progress,
// above that its own.
platform::AtomicRef<uint32_t> Progress(Kernel& kernel, CpuNumber cpu, abi::CpuhpState state);

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
