// SMT off (down to `smt_threads` threads a core) and on again by each approach asked for, the
// approaches alternating, `rounds` times.
#include "guest/kernel/hotplug/hotplug.h"
#include "guest/kernel/sched/time.h"
#include "guest/scenario/scenario.h"

namespace sipi {
namespace {

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
  for (uint32_t round = 0; round < knobs.rounds; ++round) {
    for (uint32_t approach = 0; approach < abi::kSmtApproaches; ++approach) {
      if ((knobs.approaches >> approach & 1) == 0) continue;
      for (const uint32_t threads : {knobs.smt_threads, all}) {
        Settle(kernel);
        (void)SmtSwitch(kernel, threads, static_cast<abi::SmtApproach>(approach));
      }
    }
  }
}

}  // namespace sipi
