// Tree RCU: what the rest of the kernel and the scenarios see of it. docs/rcu.md explains the
// machinery. Names without their rcu_ prefix are Linux's.
#pragma once

#include "guest/kernel/kernel.h"
#include "guest/kernel/rcu/task.h"
#include "guest/kernel/sched/thread.h"

namespace sipi::rcu {

// --- Readers. Any context but between CpuDead and CpuStarting of the CPU; they nest. Preemptible
// flavour: a counter of the thread's own. Non-preemptible: preemption disabled between the two,
// which costs nothing where the kernel has no preemption.
void ReadLock();  // inline, in read_side.h
void ReadUnlock();

// --- Updaters. Thread context, preemptible, not inside a reader.
void Synchronize(
    Kernel& kernel);  // synchronize_rcu(): normal, or expedited where that is asked for
void SynchronizeExpedited(Kernel& kernel);  // synchronize_rcu_expedited()
// Any context: runs function(head) after a grace period, on the CPU that the callback is then at.
void Call(Kernel& kernel, Head& head, void (*function)(Head&));
void CallHurry(Kernel& kernel, Head& head, void (*function)(Head&));  // never put off
// Returns when all callbacks queued before have run. Not from hotplug callbacks.
void Barrier(Kernel& kernel);

// --- Polled and conditional grace periods. A cookie is good for one machine.
using Cookie = uint64_t;
struct FullCookie {
  uint64_t normal = 0;
  uint64_t expedited = 0;
};
Cookie GetState(Kernel& kernel);   // get_state_synchronize_rcu()
Cookie StartPoll(Kernel& kernel);  // start_poll_synchronize_rcu()
Cookie StartPollExpedited(Kernel& kernel);
bool Poll(Kernel& kernel, Cookie cookie);  // true: a grace period has passed since; any context
void CondSynchronize(Kernel& kernel, Cookie cookie);
void CondSynchronizeExpedited(Kernel& kernel, Cookie cookie);
FullCookie GetStateFull(Kernel& kernel);
FullCookie StartPollFull(Kernel& kernel);
FullCookie StartPollExpeditedFull(Kernel& kernel);
bool PollFull(Kernel& kernel, const FullCookie& cookie);
void CondSynchronizeFull(Kernel& kernel, const FullCookie& cookie);
void CondSynchronizeExpeditedFull(Kernel& kernel, const FullCookie& cookie);

// --- Expediting. Nests; an unbalanced UnexpediteGp() is reported in the timeline and ignored.
void ExpediteGp(Kernel& kernel);
void UnexpediteGp(Kernel& kernel);
bool GpIsExpedited(Kernel& kernel);
bool GpIsNormal(Kernel& kernel);       // rcu_normal wins, but before the scheduler runs
void EndInkernelBoot(Kernel& kernel);  // drops the boot's own expediting
// rcu_normal_wake_from_gp from now on; what it was. Any context.
bool SetNormalWakeFromGp(Kernel& kernel, bool on);

// --- Set-up and what the scheduler tells RCU. Interrupts off unless said otherwise.
void Init(Kernel& kernel);  // boot CPU, before any other CPU runs: tree and per-CPU data
// Boot CPU, after SchedInit and Init, before the first other thread may run: from here on a grace
// period is more than being called (rcu_scheduler_starting; Linux calls it in rest_init()).
void SchedulerStarting(Kernel& kernel);
// Thread context, after that: grace-period kthread, workers (RCU_SCHEDULER_RUNNING).
void SpawnThreads(Kernel& kernel);
void NoteContextSwitch(PerCpu& self, Thread& leaving, bool preempted);
void IdleEnter(PerCpu& self);  // the CPU is quiescent until IdleExit, but for interrupts
void IdleExit(PerCpu& self);
void IrqEnter(PerCpu& self);  // cheap: one nesting counter where the CPU is not idle
void IrqExit(PerCpu& self);
void SchedClockIrq(PerCpu& self, bool idle);  // each tick
bool NeedsTick(PerCpu& self);                 // RCU waits for this CPU
bool CorePending(PerCpu& self);               // RunCore has something to do
void RunCore(PerCpu& self);  // softirq: reports, advances, runs callbacks; interrupts on
void CondQs(PerCpu& self);   // rcu_all_qs(), from CondResched

// --- Hotplug, in this order up and down.
void PrepareCpu(Kernel& kernel, CpuNumber cpu);  // control CPU (rcu tree:prepare)
void ReportCpuStarting(PerCpu& self);            // the CPU itself, before it is online
void OnlineCpu(PerCpu& self);                    // its own thread
void OfflineCpu(PerCpu& self);                   // its own thread; the first step down of RCU
void DyingCpu(PerCpu& self);
void ReportCpuDead(PerCpu& self);                     // the CPU itself, its last act
void MigrateCallbacks(PerCpu& self, CpuNumber dead);  // control CPU, right after
void DeadCpu(Kernel& kernel, CpuNumber cpu);          // control CPU

// Grace periods that have ended, for those who count: normal and expedited.
uint64_t GpSeq(Kernel& kernel);
uint64_t ExpSeq(Kernel& kernel);

}  // namespace sipi::rcu
