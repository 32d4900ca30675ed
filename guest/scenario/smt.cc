// SMT off (down to `smt_threads` threads a core) and on again by each approach asked for, the
// approaches alternating, `rounds` times.
#include "guest/kernel/hotplug/hotplug.h"
#include "guest/kernel/sched/time.h"
#include "guest/scenario/crew.h"
#include "guest/scenario/scenario.h"

namespace sipi {
namespace {

// What keeps a CPU in the kernel. Where readers cannot be preempted, RCU hears of such a CPU only
// when its patience ends (jiffies_to_sched_qs): until then neither the tick nor cond_resched() says
// that no reader runs there.
void KeepBusy(CrewMember& self) {
  constexpr uint32_t kCondReschedUs = 200;
  while (!self.crew->stopping()) {
    platform::DelayUs(kCondReschedUs);
    CondResched();
  }
}

void SpawnBusy(Kernel& kernel, Crew& crew) {
  const uint32_t count = kernel.params->scenario_knobs.kernel_busy;
  auto* members = AllocateArray<CrewMember>(kernel, count);
  uint32_t made = 0;
  for (uint32_t i = 1; i < crew.cpus() && made < count; ++i) {
    const uint32_t cpu = crew.cpu(i);
    if (kernel.entry(CpuNumber(cpu)).thread != 0) continue;
    members[made].body = KeepBusy;
    crew.Spawn(members[made], {.name = "busy/%", .index = cpu, .cpu = cpu});
    ++made;
  }
}

// What one switch leaves behind (a grace period under way for the lock) must not help the next.
void Settle(Kernel& kernel) {
  constexpr uint32_t kTries = 100'000;
  for (uint32_t tries = 0; !HotplugSettled(kernel); ++tries) {
    SIPI_ASSERT(tries < kTries);
    SleepJiffies(1);
  }
}

}  // namespace

void RunSmt(Kernel& kernel) {
  const abi::ScenarioKnobs& knobs = kernel.params->scenario_knobs;
  const uint32_t all = 255;  // as many as the machine has
  Crew& busy = MakeCrew(kernel);
  SpawnBusy(kernel, busy);
  for (uint32_t round = 0; round < knobs.rounds; ++round) {
    for (uint32_t approach = 0; approach < abi::kSmtApproaches; ++approach) {
      if ((knobs.approaches >> approach & 1) == 0) continue;
      for (const uint32_t threads : {knobs.smt_threads, all}) {
        Settle(kernel);
        (void)SmtSwitch(kernel, threads, static_cast<abi::SmtApproach>(approach));
      }
    }
  }
  busy.Stop();
  busy.Join();
}

}  // namespace sipi
