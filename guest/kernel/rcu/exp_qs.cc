// Quiescent states of expedited grace periods: what the IPI finds on the CPU that it asks, and the
// reports that follow, from leaf to root.
#include "guest/kernel/rcu/exp.h"
#include "guest/kernel/sched/resched.h"

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

// The CPU is to report at its next context switch, and shall have one soon.
void ReportLater(PerCpu& self, Data& data) {
  data.cpu_no_qs_exp = true;
  data.urgent_qs.Store(1, std::memory_order_release);
  SetNeedResched(self);
}

// Nothing tells whether the interrupted thread is in a reader but preemption, where that is counted.
void AskNonPreemptible(PerCpu& self, Data& data) {
  if (CanPreempt(self) || InterruptedIdle(self)) return ReportExpCpu(self);
  ReportLater(self, data);
}

void AskPreemptible(PerCpu& self, Data& data) {
  Thread& thread = *CurrentThread();
  if (thread.rcu.read_nesting == 0) {
    // Where preemption is disabled an updater may count on that as on a reader.
    if (CanPreempt(self) || InterruptedIdle(self)) return ReportExpCpu(self);
    return ReportLater(self, data);
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
  data.state->preemptible ? AskPreemptible(self, data) : AskNonPreemptible(self, data);
}

void ReportExpStall(State& state, uint64_t waited_ms) {
  const auto report = [waited_ms](uint32_t cpu) {
    platform::Trace(abi::TraceEvent::kRcuStall, static_cast<uint16_t>(cpu),
                    static_cast<uint32_t>(waited_ms));
  };
  for (Node& leaf : state.leaves()) {
    ForEachCpu(leaf, leaf.expmask.Load(std::memory_order_relaxed),
               [&report](CpuNumber cpu) { report(cpu.value); });
    // A reader that was switched out: the CPU where it last ran.
    IrqSpinGuard guard(*state.kernel, leaf.lock);
    for (Thread* thread = leaf.exp_tasks; thread != nullptr; thread = thread->rcu.next_blocked) {
      report(thread->cpu.Load(std::memory_order_relaxed));
    }
  }
}

}  // namespace sipi::rcu
