// Expedited grace periods from end to end: who runs one and who waits for another's (the funnel),
// the wait for readers, and the wake-up. Never takes the hotplug lock: its writer may itself wait
// for a grace period.
//
// One at a time holds exp_mutex, from its start until it has seen it end. The sequence is even with
// the state bits 0 between them. Waking goes on under exp_wake_mutex, while the next may have
// begun.
#include "guest/kernel/rcu/exp.h"

namespace sipi::rcu {
namespace {

using abi::GracePeriodKind;
using abi::TraceEvent;

uint32_t Low(uint64_t sequence) { return static_cast<uint32_t>(sequence); }

bool WorkDone(State& state, uint64_t sequence) {
  return SeqDone(state.expedited_sequence.Load(std::memory_order_seq_cst), sequence);
}

WaitQueue& QueueFor(Node& node, uint64_t sequence) {
  return node.exp_wq[SeqCounter(sequence) % kExpWaitQueues];
}

// Where the running CPU's callers enter the tree. A thread that moves on meanwhile does no harm.
Node& EntryLeaf() {
  PreemptGuard guard;
  return *DataOf(platform::ThisCpu()).leaf;
}

// The caller holds exp_mutex. False: somebody else's grace period has done it meanwhile.
bool BeginGp(State& state, uint64_t sequence) {
  if (WorkDone(state, sequence)) {
    state.exp_mutex.Unlock();
    return false;
  }
  {
    IrqSpinGuard guard(*state.kernel, state.root().lock);
    PolledGpStart(state, &state.gp_seq_polled_exp_snap);
  }
  // Locked: whatever the updater did before is seen by whoever is found not to be a reader.
  const uint64_t before = state.expedited_sequence.FetchAdd(1, std::memory_order_seq_cst);
  SIPI_ASSERT(SeqState(before) == 0);
  platform::Trace(TraceEvent::kExpBegin, 0, Low(SeqStarted(before)));
  return true;
}

// Records at this node that `sequence` is wanted. False: somebody has done so already.
bool Claim(State& state, Node& node, uint64_t sequence) {
  SpinGuard guard(*state.kernel, node.exp_lock);
  if (SeqGe(node.exp_seq_rq.Load(std::memory_order_relaxed), sequence)) return false;
  node.exp_seq_rq.Store(sequence, std::memory_order_seq_cst);
  return true;
}

// Of all who want the grace period that ends at `sequence`, one comes out true, with exp_mutex held
// and the grace period begun. The others come out when it is over: each has met, on its way from
// its leaf to the root, a node where another one had been for as much.
bool FunnelLock(State& state, uint64_t sequence) {
  Node& leaf = EntryLeaf();
  const auto wanted = [sequence](Node& node) {
    return SeqGe(node.exp_seq_rq.Load(std::memory_order_acquire), sequence);
  };
  if (!wanted(leaf) && !wanted(state.root()) && state.exp_mutex.TryLock()) {
    return BeginGp(state, sequence);
  }
  for (Node* node = &leaf; node != nullptr; node = node->parent) {
    if (WorkDone(state, sequence)) return false;
    if (Claim(state, *node, sequence)) continue;
    QueueFor(*node, sequence).Wait([&state, sequence] { return WorkDone(state, sequence); });
    return false;
  }
  state.exp_mutex.Lock();
  return BeginGp(state, sequence);
}

bool ReadersAreGone(State& state) {
  Node& root = state.root();
  IrqSpinGuard guard(*state.kernel, root.lock);
  return ExpDoneLocked(root);
}

void WaitForReaders(State& state) {
  uint64_t waited = 0;
  uint64_t patience = state.stall_jiffies;
  const auto gone = [&state] { return ReadersAreGone(state); };
  for (;;) {
    const platform::Deadline deadline =
        patience == 0 ? platform::NoDeadline() : DeadlineInJiffies(*state.kernel, patience);
    if (state.expedited_wq.WaitUntil(gone, deadline)) return;
    waited += patience;
    ReportExpStall(state, waited * JiffyNs(*state.kernel) / 1'000'000);
    patience = 3 * state.stall_jiffies + 3;
  }
}

// Whoever arrives late at a node finds that this one is done with.
void PassNode(State& state, Node& node, uint64_t sequence) {
  if (SeqLt(node.exp_seq_rq.Load(std::memory_order_acquire), sequence)) {
    SpinGuard guard(*state.kernel, node.exp_lock);
    if (SeqLt(node.exp_seq_rq.Load(std::memory_order_relaxed), sequence)) {
      node.exp_seq_rq.Store(sequence, std::memory_order_seq_cst);
    }
  }
  QueueFor(node, sequence).WakeAll(*state.kernel);
}

void EndAndWake(State& state, uint64_t sequence) {
  // Ended only with this mutex: so at most one grace period's waiters are woken while the next
  // runs, and the queues, four for each node, are not mixed up.
  state.exp_wake_mutex.Lock();
  {
    IrqSpinGuard guard(*state.kernel, state.root().lock);
    PolledGpEnd(state, &state.gp_seq_polled_exp_snap);
  }
  const uint64_t running = state.expedited_sequence.Load(std::memory_order_relaxed);
  SIPI_ASSERT(SeqState(running) == 1 && SeqEnded(running) == sequence);
  state.expedited_sequence.Exchange(sequence, std::memory_order_seq_cst);
  platform::Trace(TraceEvent::kExpEnd, 0, Low(sequence));
  for (Node& node : state.nodes) PassNode(state, node, sequence);
  state.exp_wake_mutex.Unlock();
}

void RunGp(State& state, uint64_t sequence) {
  SelectExpCpus(state);
  platform::Trace(TraceEvent::kExpSelected, 0, Low(sequence));
  WaitForReaders(state);
  EndAndWake(state, sequence);
}

void GpWorkFunction(Work& work) {
  auto& gp = static_cast<ExpGpWork&>(work);
  RunGp(*gp.state, gp.sequence);
}

// The caller runs it itself where the worker does not exist yet.
void StartGp(State& state, uint64_t sequence) {
  if (!ExpWorkersRun(state)) return RunGp(state, sequence);
  ExpGpWork& work = state.exp_gp_work[SeqCounter(sequence) % 2];
  work.sequence = sequence;
  // The last but one, which had this item, is over: the last ran after it on the same worker.
  SIPI_ASSERT(QueueWork(*state.kernel, state.exp_gp_worker, work));
}

// One context on one CPU: that this function was called is a grace period. Cookies of both kinds
// count it.
void PassVacuously(State& state) {
  IrqSpinGuard guard(*state.kernel, state.root().lock);
  PolledGpStart(state, &state.gp_seq_polled_exp_snap);
  PolledGpEnd(state, &state.gp_seq_polled_exp_snap);
  const uint64_t passed = SeqEnded(state.expedited_sequence.Load(std::memory_order_relaxed));
  state.expedited_sequence.Store(passed, std::memory_order_seq_cst);
  for (Node& node : state.nodes) node.exp_seq_rq.Store(passed, std::memory_order_relaxed);
}

GracePeriodKind Expedited(State& state) {
  if (state.scheduler_state.Load(std::memory_order_acquire) ==
      static_cast<uint32_t>(SchedulerState::kInactive)) {
    PassVacuously(state);
    return GracePeriodKind::kNone;
  }
  const uint64_t sequence = SnapExpSequence(state);
  if (FunnelLock(state, sequence)) {
    StartGp(state, sequence);
    QueueFor(state.root(), sequence).Wait([&state, sequence] { return WorkDone(state, sequence); });
    state.exp_mutex.Unlock();
  }
  return GracePeriodKind::kExpedited;
}

}  // namespace

uint64_t SnapExpSequence(State& state) {
  // A locked operation: the caller's stores come before whatever the grace period looks at.
  return SeqSnap(state.expedited_sequence.FetchAdd(0, std::memory_order_seq_cst));
}

bool ExpWorkersRun(State& state) {
  return state.exp_workers_started.Load(std::memory_order_acquire) != 0 &&
         state.scheduler_state.Load(std::memory_order_acquire) ==
             static_cast<uint32_t>(SchedulerState::kRunning);
}

void SynchronizeExpedited(Kernel& kernel) {
  if (kernel.rcu == nullptr) return Synchronize(kernel);  // nothing to wait for yet
  State& state = StateOf(kernel);
  if (GpIsNormal(kernel)) return SynchronizeNormal(state);
  platform::Trace(TraceEvent::kSyncBegin, 0, static_cast<uint32_t>(GracePeriodKind::kExpedited));
  const GracePeriodKind kind = Expedited(state);
  platform::Trace(TraceEvent::kSyncEnd, 0, static_cast<uint32_t>(kind));
}

uint64_t ExpSeq(Kernel& kernel) {
  return StateOf(kernel).expedited_sequence.Load(std::memory_order_acquire);
}

void SpawnExpThreads(State& state) {
  Kernel& kernel = *state.kernel;
  StartWorker(kernel, state.exp_gp_worker, {.name = "rcu_exp_gp", .priority = Priority::kFifo});
  StartWorker(kernel, state.exp_poll_worker, {.name = "rcu_exp_poll"});
  for (ExpGpWork& work : state.exp_gp_work) {
    work.state = &state;
    work.function = GpWorkFunction;
  }
  for (Node& leaf : state.leaves()) {
    leaf.exp_work.node = &leaf;
    leaf.exp_work.function = SelectWorkFunction;
    leaf.exp_poll_work.node = &leaf;
    leaf.exp_poll_work.function = PollWorkFunction;
    // The last leaf's CPUs are always selected by the grace period's own thread.
    if (&leaf == &state.leaves().back() || kernel.kernel_knobs().rcu_exp_parallel == 0) continue;
    StartWorker(kernel, leaf.exp_worker,
                {.name = "rcu_exp_par_gp/%",
                 .index = static_cast<uint32_t>(&leaf - state.leaves().data()),
                 .priority = Priority::kFifo});
  }
  state.exp_workers_started.Store(1, std::memory_order_release);
}

}  // namespace sipi::rcu
