// call_rcu workers at work: an updater on each CPU queues its callbacks as fast as it can, within
// queue_ms, then, for as long as is asked for, a few every now and then, so that a worker has the
// time to bind itself. The rate is the sum of kScaleEnd's values over the time from the first
// kScaleBegin to the last kScaleEnd.
#include "guest/kernel/callrcu/call_rcu.h"

#include "guest/kernel/rcu/rcu.h"
#include "guest/kernel/sched/time.h"
#include "guest/scenario/crew.h"
#include "guest/scenario/rcu_scenarios.h"

namespace sipi {
namespace {

constexpr uint32_t kCallsPerLook = 32;
constexpr uint64_t kTrickleUs = 5000;  // between two callbacks afterwards

struct Callback;

struct Updater : CrewMember {
  callrcu::Workers* workers = nullptr;
  Callback* callbacks = nullptr;  // [measurements]
  Callback* trickle = nullptr;    // one more
  platform::Deadline queue_end = platform::NoDeadline();
  platform::Deadline end = platform::NoDeadline();
  uint64_t queued = 0;
  // Counted by this CPU's worker alone; read after a barrier.
  uint64_t ended = 0;
};

struct Callback : rcu::Head {
  Updater* updater = nullptr;
  platform::Atomic<uint32_t> in_flight{0};  // of the trickle's
};

void Count(rcu::Head& head) { ++static_cast<Callback&>(head).updater->ended; }

void CountTrickle(rcu::Head& head) {
  Count(head);
  static_cast<Callback&>(head).in_flight.Store(0, std::memory_order_release);
}

void Trickle(Updater& self) {
  while (!platform::Expired(self.end)) {
    SleepUs(kTrickleUs);
    Callback& callback = *self.trickle;
    if (callback.in_flight.Exchange(1, std::memory_order_acquire) != 0) continue;
    callrcu::Call(*self.workers, callback, CountTrickle);
    ++self.queued;
  }
}

void Update(CrewMember& member) {
  auto& self = static_cast<Updater&>(member);
  Kernel& kernel = self.crew->kernel();
  const abi::ScenarioKnobs& knobs = kernel.params->scenario_knobs;
  self.crew->AwaitStart();
  platform::Trace(abi::TraceEvent::kScaleBegin, static_cast<uint16_t>(self.index), 0);
  while (self.queued < knobs.measurements) {
    Callback& callback = self.callbacks[self.queued];
    callback.updater = &self;
    callrcu::Call(*self.workers, callback, Count);
    if (++self.queued % kCallsPerLook != 0) continue;
    CondResched();
    if (platform::Expired(self.queue_end)) break;
  }
  callrcu::Barrier(*self.workers);
  platform::Trace(abi::TraceEvent::kScaleEnd, static_cast<uint16_t>(self.index),
                  static_cast<uint32_t>(self.queued));
  Trickle(self);
}

void Report(Kernel& kernel, callrcu::Workers& workers, Updater* updaters, uint32_t count) {
  if (kernel.params->torture_gpa == 0) return;
  auto& counters = *reinterpret_cast<abi::TortureCounters*>(kernel.params->torture_gpa);
  for (uint32_t i = 0; i < count; ++i) {
    counters.callbacks_queued += updaters[i].queued;
    counters.callbacks_run += updaters[i].ended;
  }
  for (uint32_t i = 0; i < workers.count; ++i) {
    counters.updates += callrcu::StatsOf(workers, CpuNumber(i)).batches;
  }
  if (counters.callbacks_queued != counters.callbacks_run) ++counters.failures;
}

}  // namespace

void RunCallRcu(Kernel& kernel) {
  const abi::ScenarioKnobs& knobs = kernel.params->scenario_knobs;
  callrcu::Workers& workers = callrcu::Start(kernel);
  Crew& crew = MakeCrew(kernel);
  const uint32_t count = abi::WritersOf(knobs.writers, crew.cpus());
  auto* updaters = AllocateArray<Updater>(kernel, count);
  const platform::Deadline end = platform::DeadlineInUs(uint64_t{knobs.duration_ms} * 1000);
  const platform::Deadline queue_end =
      knobs.queue_ms == 0 ? platform::NoDeadline()
                          : platform::DeadlineInUs(uint64_t{knobs.queue_ms} * 1000);
  for (uint32_t i = 0; i < count; ++i) {
    Updater& updater = updaters[i];
    updater.workers = &workers;
    updater.callbacks = AllocateArray<Callback>(kernel, knobs.measurements);
    updater.trickle = AllocateArray<Callback>(kernel, 1);
    updater.trickle->updater = &updater;
    updater.queue_end = queue_end;
    updater.end = end;
    updater.body = Update;
    crew.Spawn(updater, {.name = "updater/%", .index = i, .cpu = crew.cpu(i)});
  }
  crew.Start();
  crew.Join();
  callrcu::Stop(workers);
  Report(kernel, workers, updaters, count);
}

}  // namespace sipi
