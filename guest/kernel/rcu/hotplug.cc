// CPUs that come and go. A CPU counts for grace periods from ReportCpuStarting, by which it is in
// its leaf's qsmaskinitnext before it can be a reader, to ReportCpuDead, after which it is none.
// The leaf's ofl_lock keeps a grace period that begins from seeing it half done.
#include "guest/kernel/rcu/internal.h"

namespace sipi::rcu {

void PrepareCpu(Kernel& kernel, CpuNumber cpu) {
  State& state = StateOf(kernel);
  Data& data = DataOf(kernel, cpu);
  kernel.percpu(cpu).rcu = &data;
  IrqSpinGuard guard(kernel, data.leaf->lock);
  // As if it had been quiescent in all that was: it notices the next beginning.
  data.gp_seq = data.leaf->gp_seq.Load(std::memory_order_relaxed);
  data.gp_seq_needed = data.gp_seq;
  data.cpu_no_qs_norm = true;
  data.cpu_no_qs_exp = false;
  data.core_needs_qs = false;
  data.irq_nesting = 0;
  data.batch_limit = kBatchLimit;
  data.length_last_check = 0;
  data.fqs_count_snap = state.fqs_count.Load(std::memory_order_relaxed);
  state.online_cpus.FetchAdd(1, std::memory_order_relaxed);
}

void ReportCpuStarting(PerCpu& self) {
  Data& data = DataOf(self);
  State& state = *data.state;
  Node& leaf = *data.leaf;
  IrqGuard irq;
  leaf.ofl_lock.Lock(*self.kernel);
  IdleExit(self);  // watched from here on
  {
    // Not in the middle of a barrier's look at this CPU.
    IrqSpinGuard barrier(*self.kernel, state.barrier_lock);
    data.up.Store(1, std::memory_order_release);
  }
  leaf.lock.Lock(*self.kernel);
  leaf.qsmaskinitnext |= data.grpmask;
  const bool is_new = (leaf.expmaskinitnext & data.grpmask) == 0;
  leaf.expmaskinitnext |= data.grpmask;
  if (is_new) state.ncpus.FetchAdd(1, std::memory_order_acq_rel);
  // No grace period waits for a CPU that is not there: ReportCpuDead has reported for it, or, where
  // it went between the scan and the leaf's turn, InitNode in the step in which it set the bit.
  SIPI_ASSERT((leaf.qsmask.Load(std::memory_order_relaxed) & data.grpmask) == 0);
  leaf.lock.Unlock();
  leaf.ofl_lock.Unlock();
}

void OnlineCpu(PerCpu& self) {
  Data& data = DataOf(self);
  IrqSpinGuard guard(*self.kernel, data.leaf->lock);
  data.leaf->ffmask |= data.grpmask;
}

void OfflineCpu(PerCpu& self) {
  Data& data = DataOf(self);
  IrqSpinGuard guard(*self.kernel, data.leaf->lock);
  data.leaf->ffmask &= ~data.grpmask;
}

void DyingCpu(PerCpu& self) {
  // Linux has this state for its trace only; here it says that no reader is in the CPU's own way.
  SIPI_ASSERT(self.current == nullptr || self.current->rcu.read_nesting == 0);
}

void ReportCpuDead(PerCpu& self) {
  Data& data = DataOf(self);
  Node& leaf = *data.leaf;
  IrqGuard irq;
  ReportDeferredQs(self);
  leaf.ofl_lock.Lock(*self.kernel);
  leaf.lock.Lock(*self.kernel);
  if ((leaf.qsmask.Load(std::memory_order_relaxed) & data.grpmask) != 0) {
    data.urgent_qs.Store(0, std::memory_order_relaxed);
    data.need_heavy_qs.Store(0, std::memory_order_relaxed);
    ReportQsNode(leaf, data.grpmask, leaf.gp_seq.Load(std::memory_order_relaxed));
    leaf.lock.Lock(*self.kernel);
  }
  leaf.qsmaskinitnext &= ~data.grpmask;
  leaf.lock.Unlock();
  leaf.ofl_lock.Unlock();
  data.irq_nesting = 0;
  IdleEnter(self);
  data.up.Store(0, std::memory_order_release);
}

void MigrateCallbacks(PerCpu& self, CpuNumber dead) {
  Kernel& kernel = *self.kernel;
  State& state = StateOf(kernel);
  Data& from = DataOf(kernel, dead);
  uint64_t moved = 0;
  bool wake = false;
  {
    IrqSpinGuard barrier(kernel, state.barrier_lock);
    moved = from.callbacks.length();
    if (moved == 0) return;
    // A barrier that has looked at neither list yet, or at the other one only, must find these too.
    EntrainBarrier(from);
    Data& to = DataOf(platform::ThisCpu());
    Node& leaf = *to.leaf;
    moved = from.callbacks.length();
    leaf.lock.Lock(kernel);
    wake = AdvanceCallbacks(leaf, from);
    wake = AdvanceCallbacks(leaf, to) || wake;
    to.callbacks.Merge(from.callbacks);
    wake = AccelerateCallbacks(leaf, to) || wake;
    leaf.lock.Unlock();
    PublishCallbackCount(from);
    PublishCallbackCount(to);
  }
  if (wake) WakeGpThread(state);
  platform::Trace(abi::TraceEvent::kCallbacksMigrated, static_cast<uint16_t>(dead.value),
                  static_cast<uint32_t>(moved));
}

void DeadCpu(Kernel& kernel, CpuNumber cpu) {
  Data& data = DataOf(kernel, cpu);
  SIPI_ASSERT(data.callbacks.empty());
  StateOf(kernel).online_cpus.FetchAdd(~0u, std::memory_order_relaxed);
}

}  // namespace sipi::rcu
