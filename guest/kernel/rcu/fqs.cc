// Forcing quiescent states: the scans of the grace-period kthread, and how they get more urgent.
#include "guest/kernel/rcu/internal.h"

namespace sipi::rcu {
namespace {

// What one scan goes by.
struct Scan {
  State& state;
  bool first = false;
  uint64_t now_jiffies = 0;
  uint64_t age_jiffies = 0;  // of the grace period
};

// Tells a CPU that is in no hurry. Twice the time, or too many callbacks: step the counter too.
void Urge(const Scan& scan, Data& data) {
  State& state = scan.state;
  const uint64_t patience = state.jiffies_to_sched_qs;
  const bool overdue = scan.now_jiffies > state.first_urge_jiffies;
  const bool heavy = scan.age_jiffies > 2 * patience || overdue || state.callback_overload != 0;
  if (heavy && data.need_heavy_qs.Load(std::memory_order_relaxed) == 0) {
    data.need_heavy_qs.Store(1, std::memory_order_release);
    data.urgent_qs.Store(1, std::memory_order_release);
  } else if (scan.age_jiffies > patience) {
    data.urgent_qs.Store(1, std::memory_order_release);
  }
  if ((overdue || state.callback_overload != 0) &&
      scan.now_jiffies > data.urged_jiffies + patience) {
    data.urged_jiffies = scan.now_jiffies;
    ReschedCpu(*state.kernel, data.cpu);
  }
}

bool IsQuiescent(const Scan& scan, Data& data) {
  if (scan.first) {
    data.watching_snap = WatchingSnapshot(data);
    return !RcuWatches(data.watching_snap);
  }
  if (WatchingStoppedSince(data, data.watching_snap)) return true;
  Urge(scan, data);
  return false;
}

// CPUs of the leaf that the scan found quiescent; reports them.
uint32_t ScanLeaf(const Scan& scan, Node& leaf) {
  State& state = scan.state;
  IrqGuard irq;
  leaf.lock.Lock(*state.kernel);
  const uint64_t waits = leaf.qsmask.Load(std::memory_order_relaxed);
  uint64_t quiescent = 0;
  uint32_t count = 0;
  ForEachCpu(leaf, waits, [&](CpuNumber cpu) {
    Data& data = DataOf(*state.kernel, cpu);
    if (!IsQuiescent(scan, data)) return;
    quiescent |= data.grpmask;
    ++count;
  });
  if (quiescent != 0) {
    ReportQsNode(leaf, quiescent, leaf.gp_seq.Load(std::memory_order_relaxed));
  } else {
    leaf.lock.Unlock();
  }
  return count;
}

void ForceScan(State& state, bool first) {
  state.fqs_count.Store(state.fqs_count.Load(std::memory_order_relaxed) + 1,
                        std::memory_order_relaxed);
  const uint64_t now = Jiffies(*state.kernel);
  const Scan scan{.state = state,
                  .first = first,
                  .now_jiffies = now,
                  .age_jiffies = now - state.gp_start_jiffies.Load(std::memory_order_relaxed)};
  uint32_t quiescent = 0;
  state.callback_overload = 0;
  for (Node& leaf : state.leaves()) {
    if (leaf.qsmask.Load(std::memory_order_acquire) != 0) quiescent += ScanLeaf(scan, leaf);
    if (leaf.overload_mask.Load(std::memory_order_relaxed) != 0) state.callback_overload = 1;
    CondResched();
  }
  platform::Trace(abi::TraceEvent::kGpFqs, 0, quiescent);
}

bool NothingToWaitFor(State& state) {
  Node& root = state.root();
  IrqSpinGuard guard(*state.kernel, root.lock);
  return root.qsmask.Load(std::memory_order_relaxed) == 0 && root.gp_tasks == nullptr;
}

bool TakeFlag(State& state, uint32_t flag) {
  IrqSpinGuard guard(*state.kernel, state.root().lock);
  const uint32_t flags = state.gp_flags.Load(std::memory_order_relaxed);
  if ((flags & flag) == 0) return false;
  state.gp_flags.Store(flags & ~flag, std::memory_order_seq_cst);
  return true;
}

}  // namespace

void FqsLoop(State& state) {
  uint64_t wait = state.jiffies_till_first_fqs;
  for (bool first = true;; first = false) {
    if (state.callback_overload != 0) wait = wait < 3 ? 1 : (wait + 2) / 3;
    state.gp_state.Store(static_cast<uint32_t>(GpState::kWaitFqs), std::memory_order_relaxed);
    if (!GpFlagIsSet(state, kGpFlagFqs)) {
      (void)state.gp_wq.WaitUntil([&] { return GpFlagIsSet(state, kGpFlagFqs); },
                                  DeadlineInJiffies(*state.kernel, wait));
      state.gp_awake_jiffies = Jiffies(*state.kernel);
    }
    NoteGpActivity(state, Jiffies(*state.kernel));
    state.gp_state.Store(static_cast<uint32_t>(GpState::kDoingFqs), std::memory_order_relaxed);
    (void)TakeFlag(state, kGpFlagFqs);
    if (NothingToWaitFor(state)) return;
    ForceScan(state, first);
    CheckStall(state);
    wait = state.jiffies_till_next_fqs;
  }
}

void ForceQuiescentState(State& state) {
  {
    IrqSpinGuard guard(*state.kernel, state.root().lock);
    const uint32_t flags = state.gp_flags.Load(std::memory_order_relaxed);
    if (!GpInProgress(state) || (flags & kGpFlagFqs) != 0) return;
    state.gp_flags.Store(flags | kGpFlagFqs, std::memory_order_seq_cst);
  }
  WakeGpThread(state);
}

}  // namespace sipi::rcu
