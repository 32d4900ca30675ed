// Calls between the files of expedited and polled grace periods. What the rest of RCU calls of them
// is in internal.h, what the rest of the kernel calls in rcu.h.
#pragma once

#include "guest/kernel/rcu/internal.h"

namespace sipi::rcu {

// --- exp_gp.cc
// The sequence at which a full expedited grace period after this call has ended. Any context.
uint64_t SnapExpSequence(State& state);
// The workers exist and may be waited for. Any context.
bool ExpWorkersRun(State& state);

// --- exp_select.cc
// Finds out which CPUs and blocked readers are to be waited for, and asks those CPUs. Thread
// context, exp_mutex held. On return every leaf has been asked.
void SelectExpCpus(State& state);
void SelectWorkFunction(Work& work);

// --- exp_qs.cc
// Nothing below this node is waited for. Its lock held.
inline bool ExpDoneLocked(Node& node) {
  return node.exp_tasks == nullptr && node.expmask.Load(std::memory_order_relaxed) == 0;
}
// Takes the CPUs of `mask` out of the leaf's expmask and reports up; those that are out already are
// left alone. `wake`: somebody may be waiting. No node's lock held; any context.
void ReportExpCpus(Node& leaf, uint64_t mask, bool wake);
// What the IPI runs, on the CPU that is asked: interrupt context.
void ExpHandler(void*);

// --- stall.cc
// Names who holds the grace period up, in the timeline and on the serial port. Thread context.
void ReportExpStall(State& state, uint64_t waited_ms);

// --- polled.cc
void PollWorkFunction(Work& work);

}  // namespace sipi::rcu
