// Idle CPUs: the counter by which the grace-period kthread sees, without waking anybody, that a CPU
// is in an extended quiescent state or has been in one.
#include "guest/kernel/rcu/internal.h"

namespace sipi::rcu {
namespace {

// A locked operation: readers before it are seen to have ended, those after it see all that who saw
// the old value had done before.
void Step(Data& data) { data.watching.FetchAdd(1, std::memory_order_seq_cst); }

}  // namespace

uint32_t WatchingSnapshot(Data& data) { return data.watching.Load(std::memory_order_seq_cst); }

bool WatchingStoppedSince(Data& data, uint32_t snapshot) {
  return data.watching.Load(std::memory_order_seq_cst) != snapshot;
}

bool IsWatching(PerCpu& self) {
  const Data& data = DataOf(self);
  return !data.idle || data.irq_nesting != 0;
}

void MomentaryIdle(PerCpu& self) {
  Data& data = DataOf(self);
  data.need_heavy_qs.Store(0, std::memory_order_relaxed);
  data.watching.FetchAdd(2, std::memory_order_seq_cst);
}

void IdleEnter(PerCpu& self) {
  if (self.rcu == nullptr) return;
  Data& data = *self.rcu;
  if (data.idle) return;
  ReportDeferredQs(self);
  data.idle = true;
  Step(data);
}

void IdleExit(PerCpu& self) {
  if (self.rcu == nullptr) return;
  Data& data = *self.rcu;
  if (!data.idle) return;
  Step(data);
  data.idle = false;
}

void IrqEnter(PerCpu& self) {
  if (self.rcu == nullptr) return;
  Data& data = *self.rcu;
  if (data.irq_nesting++ == 0 && data.idle) Step(data);
}

void IrqExit(PerCpu& self) {
  if (self.rcu == nullptr) return;
  Data& data = *self.rcu;
  if (data.irq_nesting == 0) return;  // it came in before RCU was set up
  if (--data.irq_nesting == 0 && data.idle) Step(data);
}

}  // namespace sipi::rcu
