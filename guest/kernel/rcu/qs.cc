// Quiescent states: how a CPU notes that it has had one, and how reports go up the tree.
#include "guest/kernel/rcu/internal.h"

namespace sipi::rcu {
namespace {

// The tree has nothing left to wait for. The root locked; unlocks.
void ReportAll(State& state) {
  state.gp_flags.Store(state.gp_flags.Load(std::memory_order_relaxed) | kGpFlagFqs,
                       std::memory_order_seq_cst);
  state.root().lock.Unlock();
  WakeGpThread(state);
}

// Tells the CPU, if anything, to hurry no more.
void ForgetUrgency(Data& data) {
  if (data.urgent_qs.Load(std::memory_order_relaxed) != 0)
    data.urgent_qs.Store(0, std::memory_order_relaxed);
  if (data.need_heavy_qs.Load(std::memory_order_relaxed) != 0)
    data.need_heavy_qs.Store(0, std::memory_order_relaxed);
}

// The tick came while a thread ran. Interrupts off.
void PreemptibleTick(PerCpu& self, Thread& thread) {
  Data& data = DataOf(self);
  const bool reads = thread.rcu.read_nesting > 0 || thread.preempt_count != 0;
  if (reads && thread.rcu.special.any()) SetNeedResched(self);
  if (!reads) {
    ReportDeferredQs(self);
    NoteQs(self);
    return;
  }
  // The grace period is old: the reader's end is to report at once.
  const bool old = Jiffies(*self.kernel) > data.gp_start_jiffies + self.kernel->kernel_knobs().hz;
  if (thread.rcu.read_nesting > 0 && data.core_needs_qs && data.cpu_no_qs_norm && old)
    thread.rcu.special.need_qs = 1;
}

// Only a kernel that counts can tell that the interrupted code is no reader.
void NonPreemptibleTick(PerCpu& self, Thread& thread) {
  const abi::Preemption preemption = self.kernel->kernel_knobs().preemption;
  const bool counts = preemption == abi::Preemption::kFull || preemption == abi::Preemption::kLazy;
  if (counts && thread.preempt_count == 0) NoteQs(self);
}

}  // namespace

void NoteQs(PerCpu& self) {
  Data& data = DataOf(self);
  data.cpu_no_qs_norm = false;
  if (data.state->preemptible) {
    if (self.current != nullptr) self.current->rcu.special.need_qs = 0;
  } else if (data.cpu_no_qs_exp) {
    ReportExpCpu(self);
  }
}

void ReportQsNode(Node& start, uint64_t mask, uint64_t gp_seq) {
  State& state = *start.state;
  for (Node* node = &start;;) {
    const uint64_t waits = node->qsmask.Load(std::memory_order_relaxed);
    // Without a mask: somebody who had the node held up has gone.
    const bool late = (mask != 0 && (waits & mask) == 0) ||
                      node->gp_seq.Load(std::memory_order_relaxed) != gp_seq;
    if (late) return node->lock.Unlock();
    if (mask != 0) node->qsmask.Store(waits & ~mask, std::memory_order_relaxed);
    if ((waits & ~mask) != 0 || node->gp_tasks != nullptr) return node->lock.Unlock();
    if (node->IsRoot()) return ReportAll(state);
    mask = node->grpmask;
    node->lock.Unlock();
    node = node->parent;
    node->lock.Lock(*state.kernel);
  }
}

void ReportUnblockQsNode(Node& leaf) {
  ReportQsNode(leaf, 0, leaf.gp_seq.Load(std::memory_order_relaxed));
}

void ReportQsCpu(PerCpu& self) {
  Data& data = DataOf(self);
  Node& leaf = *data.leaf;
  leaf.lock.Lock(*self.kernel);
  const uint64_t gp_seq = leaf.gp_seq.Load(std::memory_order_relaxed);
  if (data.cpu_no_qs_norm || gp_seq != data.gp_seq) {
    // What was quiescent was so in an earlier grace period.
    data.cpu_no_qs_norm = true;
    return leaf.lock.Unlock();
  }
  data.core_needs_qs = false;
  if ((leaf.qsmask.Load(std::memory_order_relaxed) & data.grpmask) == 0) return leaf.lock.Unlock();
  const bool wake = AccelerateCallbacks(leaf, data);
  ForgetUrgency(data);
  ReportQsNode(leaf, data.grpmask, gp_seq);
  if (wake) WakeGpThread(*data.state);
}

bool NoteGpChangesLocked(Node& leaf, Data& data) {
  const uint64_t now = leaf.gp_seq.Load(std::memory_order_relaxed);
  if (data.gp_seq == now) return false;
  bool wake = false;
  if (SeqCompletedSince(now, data.gp_seq)) {
    wake = AdvanceCallbacks(leaf, data);
    data.core_needs_qs = false;
  } else {
    wake = AccelerateCallbacks(leaf, data);
  }
  if (SeqStartedSince(now, data.gp_seq)) {
    const bool waits = (leaf.qsmask.Load(std::memory_order_relaxed) & data.grpmask) != 0;
    data.cpu_no_qs_norm = waits;
    data.core_needs_qs = waits;
    data.gp_start_jiffies = Jiffies(*data.state->kernel);
  }
  data.gp_seq = now;
  if (SeqLt(data.gp_seq_needed, leaf.gp_seq_needed)) data.gp_seq_needed = leaf.gp_seq_needed;
  return wake;
}

void NoteGpChanges(PerCpu& self) {
  Data& data = DataOf(self);
  Node& leaf = *data.leaf;
  if (leaf.gp_seq.Load(std::memory_order_acquire) == data.gp_seq) return;
  leaf.lock.Lock(*self.kernel);
  const bool wake = NoteGpChangesLocked(leaf, data);
  leaf.lock.Unlock();
  if (wake) WakeGpThread(*data.state);
}

void CheckQuiescentState(PerCpu& self) {
  Data& data = DataOf(self);
  NoteGpChanges(self);
  if (data.core_needs_qs && !data.cpu_no_qs_norm) ReportQsCpu(self);
}

void NoteContextSwitch(PerCpu& self, Thread& leaving, bool preempted) {
  (void)preempted;  // a reader that sleeps is waited for like one that was preempted
  if (self.rcu == nullptr) return;
  Data& data = *self.rcu;
  if (data.state->preemptible) {
    if (leaving.rcu.read_nesting > 0) {
      if (leaving.rcu.special.blocked == 0) QueueBlockedReader(self, leaving);
    } else {
      ReportDeferredQs(self);
    }
    NoteQs(self);
    if (data.cpu_no_qs_exp) ReportExpCpu(self);
    return;
  }
  NoteQs(self);
  CondQs(self);
}

void SchedClockIrq(PerCpu& self, bool idle) {
  if (self.rcu == nullptr) return;
  Data& data = *self.rcu;
  CheckStall(*data.state);  // the kthread itself may be what does not run
  if (data.urgent_qs.Load(std::memory_order_acquire) != 0) {
    if (!idle) SetNeedResched(self);
    if (data.state->preemptible) data.urgent_qs.Store(0, std::memory_order_relaxed);
  }
  // The idle thread itself may be in a reader where it runs callbacks.
  const bool in_idle_loop = idle && data.idle && data.irq_nesting <= 1;
  if (in_idle_loop || self.current == nullptr) return NoteQs(self);
  data.state->preemptible ? PreemptibleTick(self, *self.current)
                          : NonPreemptibleTick(self, *self.current);
}

void CondQs(PerCpu& self) {
  if (self.rcu == nullptr) return;
  Data& data = *self.rcu;
  if (data.state->preemptible || data.urgent_qs.Load(std::memory_order_acquire) == 0) return;
  IrqGuard irq;
  data.urgent_qs.Store(0, std::memory_order_relaxed);
  if (data.need_heavy_qs.Load(std::memory_order_acquire) != 0) MomentaryIdle(self);
  NoteQs(self);
}

bool NeedsTick(PerCpu& self) {
  if (self.rcu == nullptr) return false;
  const Data& data = *self.rcu;
  if (data.state->gp_thread == nullptr) return false;
  return !data.idle || !data.callbacks.empty();
}

}  // namespace sipi::rcu
