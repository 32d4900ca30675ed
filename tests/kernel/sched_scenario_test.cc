// The scheduler's own scenario, as it also runs on KVM, under many schedules and in each model.
#include "guest/scenario/scenario.h"
#include "tests/kernel/kernel_machine.h"

namespace sipi {
namespace {

TEST(SchedScenario, HoldsUnderAnyScheduleInEachPreemptionModel) {
  for (const abi::Preemption model : {abi::Preemption::kNone, abi::Preemption::kVoluntary,
                                      abi::Preemption::kFull, abi::Preemption::kLazy}) {
    KernelOptions options{.cpus = 3};
    options.kernel.preemption = model;
    ForSeeds(30, options, RunThreads);
  }
}

TEST(SchedScenario, OnManyCpus) {
  KernelMachine machine({.cpus = 256});
  machine.Run(RunThreads);
}

}  // namespace
}  // namespace sipi
