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

void AddTallies(abi::TorturePage& page) {
  auto* tally = reinterpret_cast<const abi::TortureTally*>(page.tallies_gpa);
  page.tallies_gpa = 0;
  for (; tally != nullptr; tally = reinterpret_cast<const abi::TortureTally*>(tally->next_gpa)) {
    Add(page.counters, tally->counts);
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
  torture.page = reinterpret_cast<abi::TorturePage*>(kernel.params->torture_gpa);
  *torture.page = {};
  torture.page->counters.gp_seq_begin = torture.page->counters.gp_seq_end = NormalGps(kernel);
  torture.page->counters.exp_seq_begin = torture.page->counters.exp_seq_end = ExpeditedGps(kernel);
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

void HandOver(Torture& torture) {
  abi::TortureCounters& sum = torture.page->counters;
  sum.gp_seq_end = NormalGps(*torture.kernel);
  sum.exp_seq_end = ExpeditedGps(*torture.kernel);
  for (uint32_t i = 0; i <= kPipeStages; ++i) {
    sum.freed[i] = torture.freed[i].elements.Load(std::memory_order_seq_cst);
  }
  // In this order: what is counted as run is counted as queued too.
  uint64_t run = 0;
  for (uint32_t i = 0; i < torture.cpus; ++i) {
    run += torture.callbacks[i].run.Load(std::memory_order_seq_cst);
  }
  uint64_t queued = 0;
  for (uint32_t i = 0; i < torture.cpus; ++i) {
    queued += torture.callbacks[i].queued.Load(std::memory_order_seq_cst);
  }
  sum.callbacks_queued = queued;
  sum.callbacks_run = run;
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
  // Writer, order checker and who takes CPUs off sleep most of the time, and come before readers,
  // as in rcutorture (whose readers are nice): however many there are, there is something to read.
  // Fake writers, barriers and floods are readers' equals, and are preempted.
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
  HandOver(torture);
  AddTallies(*torture.page);
  Tally& tally = *AllocateArray<Tally>(kernel, 1);
  CheckEnd(kernel, torture.page->counters, tally);
}

}  // namespace sipi
