// What the guest does once its CPUs are up.
#pragma once

#include "guest/kernel/kernel.h"

namespace sipi {

// Runs params->scenario on the boot CPU, interrupts on. Faults that concern all CPUs are made here.
void RunScenario(PerCpu& self);

// Those that need KernelKnobs::services, on the thread "init".
void RunHotplug(Kernel& kernel);
void RunSmt(Kernel& kernel);
void RunThreads(Kernel& kernel);
void RunCase(Kernel& kernel);  // cases.h

// How far boot has come, for the case that asks for grace periods everywhere.
enum class BootStage : uint32_t {
  kClockKnown,     // one CPU, one context
  kSchedulerUp,    // threads, no RCU
  kRcuUp,          // RCU, one CPU, and no other thread may run: every grace period is vacuous
  kThreadsMayRun,  // RCU without its threads
  kThreadsUp,
  kCpusUp,
};
// Does nothing unless that case is what runs.
void NoteBootStage(Kernel& kernel, BootStage stage);

}  // namespace sipi
