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
// Takes the lock if it must, and wakes. Interrupts off.
void NoteGpChanges(PerCpu& self);
// Notes a new grace period, and reports if it can. Interrupts off.
void CheckQuiescentState(PerCpu& self);

// --- Grace periods to come (gp.cc).
// Asks for the grace period that ends at `gp_seq`, from `start` up. Locked; on return still locked,
// only that node. True: the kthread is to be woken.
bool StartFutureGp(Node& start, Data& data, uint64_t gp_seq);
// Asks for a full grace period from now on. Returns gp_seq at its end. Any context.
uint64_t RequestGp(State& state);
void WakeGpThread(State& state);  // no node's lock held
// The kthread's loop.
void GpThread(void* state);
bool GpInit(State& state);
void FqsLoop(State& state);
// The kthread: is that flag there already, so that waiting for it is no sleep?
bool GpFlagIsSet(State& state, uint32_t flag);
void GpCleanup(State& state);
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

// --- Callbacks (callbacks.cc). Interrupts off, on the data's own CPU. `node`, the leaf or the
// root, is locked. True: the kthread is to be woken.
bool AdvanceCallbacks(Node& node, Data& data);
bool AccelerateCallbacks(Node& node, Data& data);
void AccelerateCallbacksUnlocked(Data& data);
// Runs those that can run, up to a limit. Interrupts on, preemption disabled.
void RunCallbacks(PerCpu& self);
bool CallbacksReady(Data& data);  // or would be, after RunCore
// callback_count follows callbacks.length().
void PublishCallbackCount(Data& data);

// --- Blocked readers (blocked.cc). Interrupts off.
// The running thread, inside a reader, gives up this CPU: onto the leaf's list.
void QueueBlockedReader(PerCpu& self, Thread& thread);
// Reports what the running thread or CPU has put off; it is in no reader.
void ReportDeferredQs(PerCpu& self);
// A new grace period waits for all who are on the list by now. Locked.
void CheckBlockedTasksAtInit(Node& leaf);

// --- Waits (sync.cc).
// A grace period that nobody can be in the way of, where nothing can run beside the caller: counts.
void PassVacuousGp(State& state);
// The kthread, before a grace period's gp_seq starts.
void TakeSyncWaiters(State& state);
// Some came too late for that. The root may be locked; interrupts off.
bool HasSyncWaiters(State& state);
// The kthread, after its end.
void WakeSyncWaiters(State& state);
void SpawnSyncThread(State& state);  // within SpawnThreads

// --- barrier_lock held: a CPU's callbacks are to have a barrier's among them (barrier.cc).
void EntrainBarrier(Data& data);

// --- Stalls (stall.cc): on the kthread at each scan, and on any CPU at its tick, interrupts off.
void CheckStall(State& state);
// A grace period has been asked for, or begins: from now on it may stall.
void ExpectProgress(State& state, uint64_t now_jiffies);
inline void NoteGpActivity(State& state, uint64_t now_jiffies) {
  state.gp_activity_jiffies.Store(now_jiffies, std::memory_order_relaxed);
}

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
