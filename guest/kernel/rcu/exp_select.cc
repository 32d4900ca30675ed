// Expedited selection: of which CPUs, and of which blocked readers, an expedited grace period has
// to wait. Leaf by leaf, in parallel where the knob says so.
//
// CPUs come and go meanwhile, and no lock keeps them: that of hotplug may be held by somebody who
// waits for this very grace period. A CPU counts from ReportCpuStarting on, which sets its bit
// under the leaf's lock, until ReportCpuDead, which takes it back under that lock; between, and
// only between, readers can run there. So a CPU without the bit needs no asking, and one with the
// bit that cannot be asked is about to lose it or to become reachable: it is asked again a jiffy
// later.
#include "guest/kernel/rcu/exp.h"
#include "guest/kernel/sched/smp_call.h"

namespace sipi::rcu {
namespace {

// CPUs that have come up for the first time join the masks that each grace period begins with.
void FoldNewCpusIn(State& state) {
  const uint32_t ncpus = state.ncpus.Load(std::memory_order_acquire);
  if (ncpus == state.ncpus_snap) return;
  state.ncpus_snap = ncpus;
  for (Node& leaf : state.leaves()) {
    uint64_t before = 0;
    {
      IrqSpinGuard guard(*state.kernel, leaf.lock);
      if (leaf.expmaskinit == leaf.expmaskinitnext) continue;
      before = leaf.expmaskinit;
      leaf.expmaskinit = leaf.expmaskinitnext;
    }
    if (before != 0) continue;
    uint64_t mask = leaf.grpmask;
    for (Node* node = leaf.parent; node != nullptr && mask != 0; node = node->parent) {
      IrqSpinGuard guard(*state.kernel, node->lock);
      const bool first = node->expmaskinit == 0;
      node->expmaskinit |= mask;
      mask = first ? node->grpmask : 0;
    }
  }
}

void ResetTree(State& state) {
  FoldNewCpusIn(state);
  for (Node& node : state.nodes) {
    IrqSpinGuard guard(*state.kernel, node.lock);
    SIPI_ASSERT(ExpDoneLocked(node));  // the last one has ended
    node.expmask.Store(node.expmaskinit, std::memory_order_relaxed);
  }
}

// One leaf's CPUs.
class Selection {
 public:
  Selection(State& state, Node& leaf) : kernel_(*state.kernel), leaf_(leaf) {}

  void Run() {
    Look();
    ForEachCpu(leaf_, to_ask_, [this](CpuNumber cpu) { Ask(cpu, MaskOf(cpu)); });
    if (quiescent_ != 0) ReportExpCpus(leaf_, quiescent_, false);
  }

 private:
  uint64_t MaskOf(CpuNumber cpu) const { return uint64_t{1} << (cpu.value - leaf_.grplo); }

  // This CPU runs us, so no reader; one that is offline has none; one that is idle neither.
  bool IsQuiescent(CpuNumber cpu, CpuNumber self) {
    if (cpu == self || (leaf_.qsmaskinitnext & MaskOf(cpu)) == 0) return true;
    Data& data = DataOf(kernel_, cpu);
    data.exp_watching_snap = WatchingSnapshot(data);
    return !RcuWatches(data.exp_watching_snap);
  }

  void Look() {
    IrqSpinGuard guard(kernel_, leaf_.lock);
    const CpuNumber self = platform::ThisCpu().cpu;
    const uint64_t mask = leaf_.expmask.Load(std::memory_order_relaxed);
    ForEachCpu(leaf_, mask, [this, self](CpuNumber cpu) {
      if (IsQuiescent(cpu, self)) quiescent_ |= MaskOf(cpu);
    });
    to_ask_ = mask & ~quiescent_;
    // Readers that were switched out before. Those who are from now on, on a CPU that has not
    // reported, put themselves in front: they are waited for as well.
    leaf_.exp_tasks = leaf_.blocked_first;
  }

  // Sends the IPI, unless the CPU has been idle since, or is this one by now.
  bool Send(CpuNumber cpu, uint64_t mask) {
    Data& data = DataOf(kernel_, cpu);
    if (WatchingStoppedSince(data, data.exp_watching_snap)) {
      quiescent_ |= mask;
      return true;
    }
    PreemptGuard guard;
    if (platform::ThisCpu().cpu == cpu) {
      quiescent_ |= mask;
      return true;
    }
    if (!CallFunctionSingle(kernel_, cpu, ExpHandler, nullptr, false)) return false;
    platform::Trace(abi::TraceEvent::kExpIpi, static_cast<uint16_t>(cpu.value), 0);
    return true;
  }

  // It was not online. True: it still counts, or counts again, and has not reported.
  bool StillCounts(uint64_t mask) {
    IrqSpinGuard guard(kernel_, leaf_.lock);
    if ((leaf_.expmask.Load(std::memory_order_relaxed) & mask) == 0) return false;
    if ((leaf_.qsmaskinitnext & mask) != 0) return true;
    quiescent_ |= mask;
    return false;
  }

  void Ask(CpuNumber cpu, uint64_t mask) {
    while (!Send(cpu, mask) && StillCounts(mask)) SleepJiffies(1);
  }

  Kernel& kernel_;
  Node& leaf_;
  uint64_t to_ask_ = 0;
  uint64_t quiescent_ = 0;
};

// By its worker, or here: before there are workers, and for the last leaf, for whose CPUs this
// thread would only wait otherwise.
bool HasWorkerFor(State& state, Node& leaf) {
  return state.kernel->kernel_knobs().rcu_exp_parallel != 0 && ExpWorkersRun(state) &&
         &leaf != &state.leaves().back();
}

}  // namespace

void SelectWorkFunction(Work& work) {
  Node& leaf = *static_cast<NodeWork&>(work).node;
  Selection(*leaf.state, leaf).Run();
}

void SelectExpCpus(State& state) {
  ResetTree(state);
  for (Node& leaf : state.leaves()) {
    leaf.exp_need_flush = false;
    if (leaf.expmask.Load(std::memory_order_relaxed) == 0) continue;  // never had a CPU
    if (!HasWorkerFor(state, leaf)) {
      Selection(state, leaf).Run();
      continue;
    }
    leaf.exp_need_flush = true;
    SIPI_ASSERT(QueueWork(*state.kernel, leaf.exp_worker, leaf.exp_work));
  }
  for (Node& leaf : state.leaves()) {
    if (leaf.exp_need_flush) FlushWork(*state.kernel, leaf.exp_worker, leaf.exp_work);
  }
}

}  // namespace sipi::rcu
