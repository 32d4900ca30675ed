// Torture's beginning and end: makes the threads, lets them run for as long as is asked for, waits
// for them and sums up.
//
// Checks: every callback that was queued has run, and grace periods of both kinds have ended, or
// normal ones only where rcu_normal forbids the others.
#include "guest/scenario/torture.h"

#include "guest/kernel/sched/time.h"
#include "guest/scenario/rcu_scenarios.h"

namespace sipi {
namespace torture {
namespace {

constexpr uint32_t kTracedFailures = 8;  // of each thread
constexpr uint32_t kDefaultMs = 1000;

CallbackCount& Here(Torture& torture) { return torture.callbacks[platform::ThisCpu().cpu.value]; }

// All members of TortureCounters are such words.
void Add(abi::TortureCounters& sum, const abi::TortureCounters& part) {
  auto* to = reinterpret_cast<uint64_t*>(&sum);
  const auto* from = reinterpret_cast<const uint64_t*>(&part);
  for (uint32_t i = 0; i < sizeof(sum) / sizeof(uint64_t); ++i) to[i] += from[i];
}

void AddTallies(Torture& torture, abi::TortureCounters& sum) {
  for (const Actor* actor = torture.actors; actor != nullptr; actor = actor->next) {
    Add(sum, actor->tally.counts);
  }
  for (uint32_t i = 0; i <= kPipeStages; ++i) {
    sum.freed[i] = torture.freed[i].elements.Load(std::memory_order_seq_cst);
  }
  for (uint32_t i = 0; i < torture.cpus; ++i) {
    sum.callbacks_queued += torture.callbacks[i].queued.Load(std::memory_order_seq_cst);
    sum.callbacks_run += torture.callbacks[i].run.Load(std::memory_order_seq_cst);
  }
}

void CheckEnd(Kernel& kernel, abi::TortureCounters& sum, Tally& tally) {
  using abi::TortureCheck;
  if (sum.callbacks_queued != sum.callbacks_run) Fail(tally, TortureCheck::kLostCallback);
  if (sum.gp_seq_end <= sum.gp_seq_begin) Fail(tally, TortureCheck::kGpHang);
  if (!rcu::GpIsNormal(kernel) && sum.exp_seq_end <= sum.exp_seq_begin) {
    Fail(tally, TortureCheck::kExpGpHang);
  }
  Add(sum, tally.counts);
}

Torture& Make(Kernel& kernel) {
  const abi::ScenarioKnobs& knobs = kernel.params->scenario_knobs;
  Torture& torture = *AllocateArray<Torture>(kernel, 1);
  torture.kernel = &kernel;
  torture.crew = &MakeCrew(kernel, /*together=*/true);
  torture.cpus = kernel.params->cpu_count;
  torture.readers = abi::TortureReaders(knobs.readers, torture.cpus);
  torture.fake_writers = abi::TortureFakeWriters(knobs.writers);
  torture.duration_us = uint64_t{1000} * (knobs.duration_ms != 0 ? knobs.duration_ms : kDefaultMs);
  torture.callbacks = AllocateArray<CallbackCount>(kernel, torture.cpus);
  MakeElements(torture);
  return torture;
}

// Before all others, however many there are: the torture lasts as long as was asked for.
void EndInTime(CrewMember& member) {
  auto& self = static_cast<Actor&>(member);
  SleepUs(self.torture->duration_us);
  self.crew->Stop();
}

void SpawnClock(Torture& torture) {
  constexpr uint32_t kStream = 0x70000;
  torture.crew->Spawn(MakeActor(torture, kStream, EndInTime),
                      {.name = "torture_clock", .priority = Priority::kFifo});
}

}  // namespace

void Fail(Tally& tally, abi::TortureCheck check) {
  using abi::TortureCheck;
  ++tally.counts.failures;
  ++tally.counts.failures_by_check[static_cast<uint32_t>(check)];
  if (check == TortureCheck::kOrder) ++tally.counts.order_failures;
  if (check == TortureCheck::kNesting) ++tally.counts.nesting_failures;
  if (check == TortureCheck::kCookieInReader || check == TortureCheck::kCookieNotDone ||
      check == TortureCheck::kTooManyCookies) {
    ++tally.counts.cookie_failures;
  }
  if (++tally.traced > kTracedFailures) return;
  platform::Trace(abi::TraceEvent::kTortureFailure, 0, static_cast<uint32_t>(check));
}

void QueueCallback(Torture& torture, rcu::Head& head, void (*function)(rcu::Head&)) {
  {
    PreemptGuard still;
    Here(torture).queued.FetchAdd(1, std::memory_order_relaxed);
  }
  rcu::Call(*torture.kernel, head, function);
}

void CountCallback(Torture& torture) {
  PreemptGuard still;
  Here(torture).run.FetchAdd(1, std::memory_order_relaxed);
}

void RandomSleep(Actor& self, uint32_t max_us) { SleepUs(1 + self.random.Below(max_us)); }

void RandomMove(Actor& self) {
  Thread& thread = *CurrentThread();
  // Offline: it stays where it is.
  (void)SetAffinity(thread, self.random.Below(self.torture->cpus));
  (void)SetAffinity(thread, Thread::kAnyCpu);
}

}  // namespace torture

void RunTorture(Kernel& kernel) {
  using namespace torture;  // NOLINT: the names of this scenario
  Torture& torture = Make(kernel);
  auto& sum = *reinterpret_cast<abi::TortureCounters*>(kernel.params->torture_gpa);
  sum = {};
  sum.gp_seq_begin = NormalGps(kernel);
  sum.exp_seq_begin = ExpeditedGps(kernel);
  SpawnReaders(torture);
  SpawnWriter(torture);
  SpawnFakeWriters(torture);
  SpawnOrderChecker(torture);
  SpawnBarrierTesters(torture);
  SpawnFlood(torture);
  SpawnOnOff(torture);
  SpawnPreempter(torture);
  SpawnClock(torture);
  torture.crew->Start();
  torture.crew->Join();
  // The pipe's callbacks queue themselves again, once for each stage.
  for (uint32_t i = 0; i <= kPipeStages; ++i) rcu::Barrier(kernel);
  sum.gp_seq_end = NormalGps(kernel);
  sum.exp_seq_end = ExpeditedGps(kernel);
  AddTallies(torture, sum);
  Tally& tally = *AllocateArray<Tally>(kernel, 1);
  CheckEnd(kernel, sum, tally);
}

}  // namespace sipi
