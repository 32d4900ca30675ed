// Quiescent states of expedited grace periods: what the IPI finds on the CPU that it asks, and the
// reports that follow, from leaf to root.
#include "guest/kernel/rcu/exp.h"
#include "guest/kernel/sched/thread.h"

namespace sipi::rcu {
namespace {

// Takes what is done below a node out of its parent's mask, as far up as that is all. Locked;
// unlocks. True: all of the tree is done.
bool ReportUp(Node& start) {
  Kernel& kernel = *start.state->kernel;
  Node* node = &start;
  while (ExpDoneLocked(*node)) {
    const uint64_t mask = node->grpmask;
    Node* const parent = node->parent;
    node->lock.Unlock();
    if (parent == nullptr) return true;
    parent->lock.Lock(kernel);
    const uint64_t before = parent->expmask.Load(std::memory_order_relaxed);
    SIPI_ASSERT((before & mask) != 0);
    parent->expmask.Store(before & ~mask, std::memory_order_relaxed);
    node = parent;
  }
  node->lock.Unlock();
  return false;
}

// The CPU was idle until this interrupt, and no other is below it.
bool InterruptedIdle(const Data& data) { return data.idle && data.irq_nesting <= 1; }

// The CPU is to report at its next context switch, and shall have one soon.
void ReportLater(PerCpu& self, Data& data) {
  data.cpu_no_qs_exp = true;
  data.urgent_qs.Store(1, std::memory_order_release);
  SetNeedResched(self);
}

// Nothing but the count of preemption, where there is one, tells that the interrupted thread is in
// no reader.
void AskNonPreemptible(PerCpu& self, Data& data) {
  const abi::Preemption preemption = self.kernel->kernel_knobs().preemption;
  const bool counts = preemption == abi::Preemption::kFull || preemption == abi::Preemption::kLazy;
  if (counts && self.current->preempt_count == 0) return ReportExpCpu(self);
  ReportLater(self, data);
}

void AskPreemptible(PerCpu& self, Data& data) {
  Thread& thread = *self.current;
  if (thread.rcu.read_nesting == 0) {
    // An updater may count on disabled preemption as on a reader.
    return thread.preempt_count == 0 ? ReportExpCpu(self) : ReportLater(self, data);
  }
  Node& leaf = *data.leaf;
  IrqSpinGuard guard(*self.kernel, leaf.lock);
  if ((leaf.expmask.Load(std::memory_order_relaxed) & data.grpmask) == 0) return;
  // Its outermost ReadUnlock reports, or the switch that puts it on the leaf's list.
  data.cpu_no_qs_exp = true;
  thread.rcu.special.exp_hint = 1;
}

}  // namespace

void ReportExpCpus(Node& leaf, uint64_t mask, bool wake) {
  State& state = *leaf.state;
  IrqGuard irq;
  leaf.lock.Lock(*state.kernel);
  const uint64_t before = leaf.expmask.Load(std::memory_order_relaxed);
  if ((before & mask) == 0) {
    leaf.lock.Unlock();
    return;
  }
  leaf.expmask.Store(before & ~mask, std::memory_order_relaxed);
  if (ReportUp(leaf) && wake) state.expedited_wq.WakeAll(*state.kernel);
}

void ReportExpNode(Node& leaf) {
  State& state = *leaf.state;
  if (ReportUp(leaf)) state.expedited_wq.WakeAll(*state.kernel);
}

void ReportExpCpu(PerCpu& self) {
  Data& data = DataOf(self);
  data.cpu_no_qs_exp = false;
  ReportExpCpus(*data.leaf, data.grpmask, true);
}

void ExpHandler(void*) {
  PerCpu& self = platform::ThisCpu();
  Data& data = DataOf(self);
  const uint64_t waited_for = data.leaf->expmask.Load(std::memory_order_acquire);
  // An IPI of a grace period that is over, or a second one.
  if ((waited_for & data.grpmask) == 0 || data.cpu_no_qs_exp) return;
  if (InterruptedIdle(data)) return ReportExpCpu(self);
  data.state->preemptible ? AskPreemptible(self, data) : AskNonPreemptible(self, data);
}

}  // namespace sipi::rcu
