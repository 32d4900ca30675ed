// Calls between the parts of RCU. "Locked" in a comment: the caller holds that node's lock, with
// interrupts off; "unlocks": the lock is given up on return, interrupts stay off.
#pragma once

#include "guest/kernel/rcu/state.h"

namespace sipi::rcu {

// --- Idle CPUs (dyntick.cc).
// `watching`, read after everything that the caller has done before: even means that whatever
// reader begins there later sees that.
uint32_t WatchingSnapshot(Data& data);
// Has the CPU been quiescent since that snapshot was taken?
bool WatchingStoppedSince(Data& data, uint32_t snapshot);
// The running CPU: not idle, or interrupted while it was. Interrupts off.
bool IsWatching(PerCpu& self);
// Steps `watching` twice: to those who took a snapshot the CPU has been idle. Interrupts off.
void MomentaryIdle(PerCpu& self);

// --- Reporting (qs.cc).
// The running CPU has been quiescent: the next report says so. Interrupts off.
void NoteQs(PerCpu& self);
// Takes `mask` out of a node's qsmask and goes on up; `gp_seq` is the grace period that is meant.
// Locked; unlocks. Wakes the kthread after the last.
void ReportQsNode(Node& node, uint64_t mask, uint64_t gp_seq);
// A leaf has lost its last blocked reader, and none of its CPUs is waited for. Locked; unlocks.
void ReportUnblockQsNode(Node& leaf);
// The running CPU's report, where it has one. Interrupts off.
void ReportQsCpu(PerCpu& self);
// The CPU looks at its leaf's gp_seq: advances its callbacks, notes a new grace period. True: the
// kthread has to be woken for another. Locked (the leaf).
bool NoteGpChangesLocked(Node& leaf, Data& data);
void NoteGpChanges(PerCpu& self);  // takes the lock if it must, and wakes. Interrupts off

// --- Grace periods to come (gp.cc).
// Asks for the grace period that ends at `gp_seq`, from `node` up. Locked; on return still locked,
// only that node. True: the kthread is to be woken.
bool StartFutureGp(Node& start, Data& data, uint64_t gp_seq);
void WakeGpThread(State& state);  // no node's lock held
// The kthread's loop.
void GpThread(void* state);
// Asks for a scan now. No node's lock held.
void ForceQuiescentState(State& state);
bool GpInProgress(State& state);
// synchronize_rcu() as a normal grace period, whatever is asked for (sync.cc). Traces its begin and
// end itself, as SynchronizeExpedited does. Thread context.
void SynchronizeNormal(State& state);
// Cookies of either kind of grace period: called at their beginning and end, the root locked. In
// polled.cc; `snap` is State::gp_seq_polled_snap or gp_seq_polled_exp_snap.
void PolledGpStart(State& state, uint64_t* snap);
void PolledGpEnd(State& state, uint64_t* snap);

// --- Callbacks (callbacks.cc). Interrupts off.
bool AdvanceCallbacks(Data& data);     // the leaf locked
bool AccelerateCallbacks(Data& data);  // likewise; true: wake the kthread
void AccelerateCallbacksUnlocked(Data& data);
void RunCallbacks(PerCpu& self);  // interrupts on
// callback_count follows callbacks.length().
void PublishCallbackCount(Data& data);

// --- Blocked readers (blocked.cc).
// The running thread leaves its outermost reader, and something is to be looked at.
void ReadUnlockSpecial(Thread& thread);
// Threads of the leaf that hold the normal grace period up. The leaf locked, or a glimpse.
inline bool HasGpTasks(const Node& leaf) { return leaf.gp_tasks != nullptr; }
// A new grace period waits for all who are on the list by now. Locked.
void CheckBlockedTasksAtInit(Node& leaf);

// --- barrier_lock held: a CPU's callbacks are to have a barrier's among them (barrier.cc).
void EntrainBarrier(Data& data);

// --- Stalls (stall.cc): on the kthread, at each scan.
void CheckStall(State& state);

// --- Expedited grace periods: in exp*.cc, called from here.
// The running CPU has been quiescent and cpu_no_qs_exp is set: clears it and reports. Interrupts
// off.
void ReportExpCpu(PerCpu& self);
// The leaf's last exp_tasks has gone and expmask may be 0: reports up. Locked; unlocks.
void ReportExpNode(Node& leaf);
// Sets the workers up. Thread context, within SpawnThreads.
void SpawnExpThreads(State& state);
void InitExp(State& state);  // within Init, once the tree is there: nesting, knobs

}  // namespace sipi::rcu
