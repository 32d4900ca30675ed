// Preemptible readers that lose their CPU: the lists of the leaves, and the end of such a reader.
#include "guest/kernel/rcu/blocked.h"

#include "guest/kernel/rcu/internal.h"

namespace sipi::rcu {
namespace {

void LinkBefore(Node& leaf, Thread& thread, Thread* next) {
  Thread* previous = next == nullptr ? leaf.blocked_last : next->rcu.previous_blocked;
  thread.rcu.previous_blocked = previous;
  thread.rcu.next_blocked = next;
  (previous == nullptr ? leaf.blocked_first : previous->rcu.next_blocked) = &thread;
  (next == nullptr ? leaf.blocked_last : next->rcu.previous_blocked) = &thread;
}

void Unlink(Node& leaf, Thread& thread) {
  TaskState& task = thread.rcu;
  if (leaf.gp_tasks == &thread) leaf.gp_tasks = task.next_blocked;
  if (leaf.exp_tasks == &thread) leaf.exp_tasks = task.next_blocked;
  (task.previous_blocked == nullptr ? leaf.blocked_first
                                    : task.previous_blocked->rcu.next_blocked) = task.next_blocked;
  (task.next_blocked == nullptr ? leaf.blocked_last : task.next_blocked->rcu.previous_blocked) =
      task.previous_blocked;
  task.next_blocked = nullptr;
  task.previous_blocked = nullptr;
  task.blocked_node = nullptr;
}

bool ExpDone(Node& leaf) {
  return leaf.exp_tasks == nullptr && leaf.expmask.Load(std::memory_order_relaxed) == 0;
}

// Takes the thread off its leaf's list; what waited for it alone goes on. Interrupts off.
void EndBlockedReader(Thread& thread) {
  Node& leaf = *thread.rcu.blocked_node;
  leaf.lock.Lock(*leaf.state->kernel);
  const bool held_up_gp = leaf.gp_tasks != nullptr;
  const bool held_up_exp = !ExpDone(leaf);
  Unlink(leaf, thread);
  const bool exp_goes_on = held_up_exp && ExpDone(leaf);
  if (held_up_gp && leaf.gp_tasks == nullptr) {
    ReportUnblockQsNode(leaf);
  } else {
    leaf.lock.Unlock();
  }
  if (!exp_goes_on) return;
  leaf.lock.Lock(*leaf.state->kernel);
  ReportExpNode(leaf);
}

}  // namespace

void QueueBlockedReader(PerCpu& self, Thread& thread) {
  Data& data = DataOf(self);
  Node& leaf = *data.leaf;
  leaf.lock.Lock(*self.kernel);
  thread.rcu.special.blocked = 1;
  thread.rcu.blocked_node = &leaf;
  const bool blocks_gp = (leaf.qsmask.Load(std::memory_order_relaxed) & data.grpmask) != 0;
  const bool blocks_exp = (leaf.expmask.Load(std::memory_order_relaxed) & data.grpmask) != 0;
  switch (
      PlaceOfBlocked(leaf.gp_tasks != nullptr, leaf.exp_tasks != nullptr, blocks_gp, blocks_exp)) {
    case BlockedPlace::kFirst:
      LinkBefore(leaf, thread, leaf.blocked_first);
      break;
    case BlockedPlace::kLast:
      LinkBefore(leaf, thread, nullptr);
      break;
    case BlockedPlace::kAfterExpTasks:
      LinkBefore(leaf, thread, leaf.exp_tasks->rcu.next_blocked);
      break;
    case BlockedPlace::kAfterGpTasks:
      LinkBefore(leaf, thread, leaf.gp_tasks->rcu.next_blocked);
      break;
  }
  if (blocks_gp && leaf.gp_tasks == nullptr) leaf.gp_tasks = &thread;
  if (blocks_exp && leaf.exp_tasks == nullptr) leaf.exp_tasks = &thread;
  leaf.lock.Unlock();
}

void ReportDeferredQs(PerCpu& self) {
  Thread* thread = self.current;
  Data& data = DataOf(self);
  const Special special = thread == nullptr ? Special{} : thread->rcu.special;
  if (!special.any() && !data.cpu_no_qs_exp) return;
  if (thread != nullptr) thread->rcu.special = Special{};
  // The CPU's report and the reader's are two: while the reader is on the list its leaf is held up.
  if (special.need_qs != 0) {
    NoteQs(self);
    ReportQsCpu(self);
  }
  if (data.cpu_no_qs_exp) ReportExpCpu(self);
  if (special.blocked != 0) EndBlockedReader(*thread);
}

void ReadUnlockSpecial(Thread& thread) {
  // Where interrupts or preemption are disabled the reader in effect goes on; and the caller may
  // hold a lock that a wake-up takes.
  const bool may_report = platform::IrqsEnabled() && thread.preempt_count == 0;
  IrqGuard irq;
  PerCpu& self = platform::ThisCpu();
  if (!may_report || DataOf(self).irq_nesting != 0) {
    thread.rcu.special.deferred_qs = 1;
    SetNeedResched(self);
    return;
  }
  ReportDeferredQs(self);
}

void CheckBlockedTasksAtInit(Node& leaf) {
  SIPI_ASSERT(leaf.gp_tasks == nullptr);  // the last grace period has waited for its own
  leaf.gp_tasks = leaf.blocked_first;
}

}  // namespace sipi::rcu
