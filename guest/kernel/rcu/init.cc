// Setting RCU up: tree, per-CPU data, waits; then its threads.
#include "guest/kernel/alloc.h"
#include "guest/kernel/rcu/internal.h"

namespace sipi::rcu {
namespace {

constexpr uint32_t kJiffiesAuto = ~0u;
// A CPU's counter begins here, idle: so it wraps while the machine is young.
constexpr uint32_t kFirstWatching = 0u - 400u;

void BuildTree(State& state, const Geometry& geometry) {
  Node* nodes = AllocateArray<Node>(*state.kernel, geometry.total);
  state.nodes = {nodes, geometry.total};
  state.levels = geometry.levels;
  for (uint32_t level = 0; level < geometry.levels; ++level) {
    state.level[level] = nodes;
    state.level_nodes[level] = geometry.nodes[level];
    nodes += geometry.nodes[level];
  }
  // Bottom-up: an inner node's CPUs are its first child's first to its last child's last.
  for (uint32_t level = geometry.levels; level-- > 0;) {
    const bool leaf = level + 1 == geometry.levels;
    for (uint32_t i = 0; i < geometry.nodes[level]; ++i) {
      Node& node = state.level[level][i];
      node.state = &state;
      node.level = static_cast<uint8_t>(level);
      node.gp_seq.Store(kInitialGpSeq, std::memory_order_relaxed);
      node.gp_seq_needed = kInitialGpSeq;
      const uint32_t spread = geometry.spread[level];
      const uint32_t children = leaf ? state.cpu_count : geometry.nodes[level + 1];
      const uint32_t first = i * spread;
      const uint32_t last = (first + spread < children ? first + spread : children) - 1;
      node.grplo = leaf ? first : state.level[level + 1][first].grplo;
      node.grphi = leaf ? last : state.level[level + 1][last].grphi;
      if (level == 0) continue;
      const uint32_t parent_spread = geometry.spread[level - 1];
      node.parent = &state.level[level - 1][i / parent_spread];
      node.grpnum = static_cast<uint8_t>(i % parent_spread);
      node.grpmask = uint64_t{1} << node.grpnum;
    }
  }
}

void SetUpCpus(State& state) {
  Kernel& kernel = *state.kernel;
  Data* all = AllocateArray<Data>(kernel, state.cpu_count);
  for (Node& leaf : state.leaves()) {
    for (uint32_t i = leaf.grplo; i <= leaf.grphi; ++i) {
      Data& data = all[i];
      data.state = &state;
      data.leaf = &leaf;
      data.grpmask = uint64_t{1} << (i - leaf.grplo);
      data.cpu = CpuNumber(i);
      data.gp_seq = kInitialGpSeq;
      data.gp_seq_needed = kInitialGpSeq;
      data.barrier_seq_snap = kInitialBarrierSeq;
      data.watching.Store(kFirstWatching, std::memory_order_relaxed);
    }
  }
  state.data = {all, state.cpu_count};
}

uint32_t Between(uint32_t low, uint32_t value, uint32_t high) {
  return value < low ? low : value > high ? high : value;
}

// Longer with more jiffies in a second, and with more CPUs to look at.
void SetUpWaits(State& state) {
  const abi::KernelKnobs& knobs = state.kernel->kernel_knobs();
  const uint32_t by_cpus = state.cpu_count / 256;
  const uint32_t usual = 1 + (knobs.hz > 250 ? 1u : 0u) + (knobs.hz > 500 ? 1u : 0u) + by_cpus;
  const uint32_t first = knobs.jiffies_till_first_fqs;
  const uint32_t next = knobs.jiffies_till_next_fqs;
  state.jiffies_till_first_fqs = first == kJiffiesAuto ? usual : Between(0, first, knobs.hz);
  state.jiffies_till_next_fqs = next == kJiffiesAuto ? usual : Between(1, next, knobs.hz);
  const uint32_t least = knobs.hz / 10 + by_cpus;
  const uint32_t scans = state.jiffies_till_first_fqs + 2 * state.jiffies_till_next_fqs;
  state.jiffies_to_sched_qs = scans > least ? scans : least;
  state.stall_jiffies = uint64_t{knobs.rcu_stall_ms} * knobs.hz / 1000;
}

// Oldest first; they were pushed.
void TakeEarlyCallbacks(Kernel& kernel, Data& data) {
  Head* reversed = nullptr;
  while (Head* head = kernel.rcu_early) {
    kernel.rcu_early = head->next;
    head->next = reversed;
    reversed = head;
  }
  while (Head* head = reversed) {
    reversed = head->next;
    data.callbacks.Enqueue(*head);
  }
  PublishCallbackCount(data);
}

bool SchedulerIs(State& state, SchedulerState scheduler) {
  return state.scheduler_state.Load(std::memory_order_acquire) == static_cast<uint32_t>(scheduler);
}

void SetSchedulerState(State& state, SchedulerState scheduler) {
  state.scheduler_state.Store(static_cast<uint32_t>(scheduler), std::memory_order_seq_cst);
}

}  // namespace

void Init(Kernel& kernel) {
  State& state = *AllocateArray<State>(kernel, 1);
  const abi::KernelKnobs& knobs = kernel.kernel_knobs();
  state.kernel = &kernel;
  state.cpu_count = kernel.params->cpu_count;
  state.preemptible = knobs.rcu_flavour == abi::RcuFlavour::kPreemptible;
  BuildTree(state, MakeGeometry(state.cpu_count, knobs.rcu_fanout, knobs.rcu_fanout_leaf));
  SetUpCpus(state);
  SetUpWaits(state);
  state.normal_wake_from_gp.Store(knobs.rcu_normal_wake_from_gp, std::memory_order_relaxed);
  InitExp(state);
  kernel.rcu = &state;
  PerCpu& self = kernel.percpu(kBootCpu);
  PrepareCpu(kernel, kBootCpu);
  ReportCpuStarting(self);
  OnlineCpu(self);
  TakeEarlyCallbacks(kernel, *self.rcu);
}

void SchedulerStarting(Kernel& kernel) {
  SIPI_ASSERT(SchedulerIs(StateOf(kernel), SchedulerState::kInactive));
  SetSchedulerState(StateOf(kernel), SchedulerState::kInit);
}

void SpawnThreads(Kernel& kernel) {
  State& state = StateOf(kernel);
  SIPI_ASSERT(SchedulerIs(state, SchedulerState::kInit));
  SpawnExpThreads(state);
  SpawnSyncThread(state);
  Thread& thread = SpawnThread(
      kernel,
      {.name = "rcu_gp", .function = GpThread, .argument = &state, .priority = Priority::kFifo});
  {
    // Whoever asked before, and found no thread, asks it now.
    IrqSpinGuard guard(kernel, state.root().lock);
    state.gp_thread = &thread;
  }
  WakeGpThread(state);
  SetSchedulerState(state, SchedulerState::kRunning);
}

uint64_t GpSeq(Kernel& kernel) { return StateOf(kernel).gp_seq.Load(std::memory_order_acquire); }

}  // namespace sipi::rcu
