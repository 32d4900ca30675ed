// Cases of the kernel beyond bring-up that are checked on every machine by the same lines:
// Scenario::kCases runs the one whose number scenario_value gives. What must not be is a panic that
// names the line.
#pragma once

#include "guest/kernel/hotplug/state.h"
#include "guest/kernel/rcu/rcu.h"

namespace sipi {

// A callback that counts itself.
struct CountedHead : rcu::Head {
  platform::Atomic<uint32_t> runs{0};
};
void CountRun(rcu::Head& head);
inline uint32_t RunsOf(CountedHead& head) { return head.runs.Load(std::memory_order_seq_cst); }

// G5: CPU 3 is missing among others; function calls, grace periods and a barrier serve the rest.
void CaseHole(Kernel& kernel);
// G7: a step that waits for an expedited grace period while others take the hotplug lock and ask
// for expedited grace periods, and where rcu_normal turns it into a normal one.
void CaseExpeditedStep(Kernel& kernel);
// G9: callbacks that a CPU leaves behind, a step of its teardown that waits for them, a barrier.
void CaseCallbacksLeft(Kernel& kernel);
// G10: grace periods and callbacks at each stage of boot; this is the end of it.
void CaseBootStages(Kernel& kernel);
// G11: every step fails, up and down; then off and on `rounds` times.
void CaseFailures(Kernel& kernel);
// G12: a reader that lost its CPU, which goes idle, and offline: after the reader, and before it,
// the last CPU of its leaf, with a grace period that begins before the CPU is dead, and after.
void CaseReaderLeft(Kernel& kernel);
// G13: expedite nesting, one call too many, rcu_normal.
void CaseNesting(Kernel& kernel);

}  // namespace sipi
