// RCU before there is one: nothing waits, nothing is counted. Goes away piece by piece.
#include "guest/kernel/rcu/rcu.h"

namespace sipi::rcu {

void EndInkernelBoot(Kernel&) {}
void Init(Kernel&) {}
void SpawnThreads(Kernel&) {}
void NoteContextSwitch(PerCpu&, Thread&, bool) {}
void IdleEnter(PerCpu&) {}
void IdleExit(PerCpu&) {}
void IrqEnter(PerCpu&) {}
void IrqExit(PerCpu&) {}
void SchedClockIrq(PerCpu&, bool) {}
bool NeedsTick(PerCpu&) { return false; }
bool CorePending(PerCpu&) { return false; }
void RunCore(PerCpu&) {}
void CondQs(PerCpu&) {}

}  // namespace sipi::rcu
