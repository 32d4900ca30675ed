// Normal grace periods: asking for one, the kthread, initialisation and clean-up. The scans in
// between are in fqs.cc.
#include "guest/kernel/rcu/internal.h"

namespace sipi::rcu {

bool GpInProgress(State& state) {
  return SeqState(state.gp_seq.Load(std::memory_order_acquire)) != 0;
}

bool GpFlagIsSet(State& state, uint32_t flag) {
  return (state.gp_flags.Load(std::memory_order_seq_cst) & flag) != 0;
}

void WakeGpThread(State& state) {
  if (state.gp_thread == nullptr) return;
  state.gp_wq.WakeOne(*state.kernel);
}

namespace {

// The root locked. Not again for one that has been asked for already.
void NoteGpRequest(State& state) {
  if (GpFlagIsSet(state, kGpFlagInit)) return;
  const uint64_t now = Jiffies(*state.kernel);
  state.gp_request_jiffies.Store(now, std::memory_order_relaxed);
  ExpectProgress(state, now);
}

}  // namespace

bool StartFutureGp(Node& start, Data& data, uint64_t gp_seq) {
  State& state = *data.state;
  bool wake = false;
  Node* node = &start;
  // Each node on the way up is marked, so that who comes later turns round early; a running grace
  // period's end finds the mark at the first one already.
  for (;; node = node->parent) {
    if (node != &start) node->lock.Lock(*state.kernel);
    const uint64_t seq = node->gp_seq.Load(std::memory_order_relaxed);
    if (SeqGe(node->gp_seq_needed, gp_seq) || SeqSnapStarted(seq, gp_seq) ||
        (node != &start && SeqState(seq) != 0))
      break;
    node->gp_seq_needed = gp_seq;
    if (SeqState(start.gp_seq.Load(std::memory_order_relaxed)) != 0) break;
    if (node->IsRoot()) {
      if (GpInProgress(state)) break;
      NoteGpRequest(state);
      state.gp_flags.Store(state.gp_flags.Load(std::memory_order_relaxed) | kGpFlagInit,
                           std::memory_order_seq_cst);
      wake = state.gp_thread != nullptr;
      break;
    }
    if (node != &start) node->lock.Unlock();
  }
  if (SeqLt(gp_seq, node->gp_seq_needed)) {  // somebody asked for more
    start.gp_seq_needed = node->gp_seq_needed;
    data.gp_seq_needed = node->gp_seq_needed;
  }
  if (node != &start) node->lock.Unlock();
  return wake;
}

uint64_t RequestGp(State& state) {
  IrqGuard irq;
  Data& data = DataOf(platform::ThisCpu());
  Node& leaf = *data.leaf;
  leaf.lock.Lock(*state.kernel);
  const uint64_t snap = SeqSnap(state.gp_seq.Load(std::memory_order_seq_cst));
  const bool wake = StartFutureGp(leaf, data, snap);
  leaf.lock.Unlock();
  if (wake) WakeGpThread(state);
  return snap;
}

namespace {

void SetGpState(State& state, GpState gp_state) {
  state.gp_state.Store(static_cast<uint32_t>(gp_state), std::memory_order_relaxed);
}

// The first CPU of a leaf: its ancestors count it. The leaf locked.
void LinkLeaf(Node& leaf) {
  Node* child = &leaf;
  for (Node* node = leaf.parent; node != nullptr; node = node->parent) {
    node->lock.Lock(*leaf.state->kernel);
    const uint64_t before = node->qsmaskinit;
    node->qsmaskinit |= child->grpmask;
    node->lock.Unlock();
    if (before != 0) return;
    child = node;
  }
}

// The last CPU of a leaf is gone, and no reader is blocked there. The leaf locked.
void UnlinkLeaf(Node& leaf) {
  Node* child = &leaf;
  for (Node* node = leaf.parent; node != nullptr; node = node->parent) {
    node->lock.Lock(*leaf.state->kernel);
    node->qsmaskinit &= ~child->grpmask;
    const uint64_t left = node->qsmaskinit;
    node->lock.Unlock();
    if (left != 0) return;
    child = node;
  }
}

// Takes the leaf's CPUs of now over for the grace period that begins.
void ScanHotplug(State& state, Node& leaf) {
  IrqSpinGuard no_hotplug(*state.kernel, leaf.ofl_lock);
  leaf.lock.Lock(*state.kernel);
  if (leaf.qsmaskinit != leaf.qsmaskinitnext || leaf.wait_blkd_tasks) {
    const uint64_t before = leaf.qsmaskinit;
    leaf.qsmaskinit = leaf.qsmaskinitnext;
    const bool readers = leaf.blocked_first != nullptr;
    if (before == 0 && leaf.qsmaskinit != 0) {
      if (!leaf.wait_blkd_tasks) LinkLeaf(leaf);  // else it still is
    } else if (before != 0 && leaf.qsmaskinit == 0) {
      if (readers) {
        leaf.wait_blkd_tasks = true;
      } else {
        UnlinkLeaf(leaf);
      }
    }
    if (leaf.wait_blkd_tasks && (!readers || leaf.qsmaskinit != 0)) {
      leaf.wait_blkd_tasks = false;
      if (leaf.qsmaskinit == 0) UnlinkLeaf(leaf);
    }
  }
  leaf.lock.Unlock();
}

// Sets one node up. A node comes after its parent, so that a report finds the way up ready.
void InitNode(State& state, Node& node, uint64_t gp_seq) {
  IrqGuard irq;
  Data& own = DataOf(platform::ThisCpu());
  node.lock.Lock(*state.kernel);
  const bool leaf = node.IsLeaf();
  if (leaf) CheckBlockedTasksAtInit(node);
  SIPI_ASSERT(node.qsmask.Load(std::memory_order_relaxed) == 0);
  node.qsmask.Store(node.qsmaskinit, std::memory_order_relaxed);
  node.gp_seq.Store(gp_seq, std::memory_order_release);
  bool wake = false;
  if (own.leaf == &node) wake = NoteGpChangesLocked(node, own);
  // CPUs that went since the scan have nobody to report for them.
  const uint64_t gone = leaf ? node.qsmaskinit & ~node.qsmaskinitnext : 0;
  if (gone != 0 || (leaf && node.wait_blkd_tasks)) {
    ReportQsNode(node, gone, gp_seq);
  } else {
    node.lock.Unlock();
  }
  if (wake) WakeGpThread(state);
}

// The kthread's CPU has just run it: that much is certain at once, and a quiet machine needs no
// second scan.
void ReportOwnCpu() {
  IrqGuard irq;
  PerCpu& self = platform::ThisCpu();
  NoteGpChanges(self);
  NoteQs(self);
  CheckQuiescentState(self);
}

}  // namespace

bool GpInit(State& state) {
  {
    IrqSpinGuard guard(*state.kernel, state.root().lock);
    if (state.gp_flags.Exchange(0, std::memory_order_seq_cst) == 0) return false;
  }
  SIPI_ASSERT(!GpInProgress(state));
  const uint64_t now = Jiffies(*state.kernel);
  state.gp_start_jiffies.Store(now, std::memory_order_relaxed);
  ExpectProgress(state, now);
  NoteGpActivity(state, now);
  state.first_urge_jiffies = now + state.stall_jiffies / 2;
  TakeSyncWaiters(state);
  // Before the CPUs are looked at: an incoming CPU that the scan missed then begins its readers
  // after the start, and what they find has been there since (docs/rcu.md, "The order at the
  // beginning").
  const uint64_t gp_seq = SeqStarted(state.gp_seq.Load(std::memory_order_relaxed));
  state.gp_seq.Store(gp_seq, std::memory_order_seq_cst);
  {
    IrqSpinGuard guard(*state.kernel, state.root().lock);
    PolledGpStart(state, &state.gp_seq_polled_snap);
  }
  platform::Trace(abi::TraceEvent::kGpBegin, 0, static_cast<uint32_t>(gp_seq));
  SetGpState(state, GpState::kOnOff);
  for (Node& leaf : state.leaves()) ScanHotplug(state, leaf);
  SetGpState(state, GpState::kInit);
  for (Node& node : state.nodes) InitNode(state, node, gp_seq);
  ReportOwnCpu();
  platform::Trace(abi::TraceEvent::kGpInit, 0, static_cast<uint32_t>(gp_seq));
  return true;
}

namespace {

// True: one more grace period has been asked for at this node.
bool CleanUpNode(State& state, Node& node, uint64_t gp_seq) {
  IrqGuard irq;
  Data& own = DataOf(platform::ThisCpu());
  node.lock.Lock(*state.kernel);
  SIPI_ASSERT(node.gp_tasks == nullptr);
  SIPI_ASSERT(node.qsmask.Load(std::memory_order_relaxed) == 0);
  node.gp_seq.Store(gp_seq, std::memory_order_release);
  bool more = false;
  if (own.leaf == &node) more = NoteGpChangesLocked(node, own);
  if (SeqLt(gp_seq, node.gp_seq_needed)) {
    more = true;
  } else {
    node.gp_seq_needed = gp_seq;
  }
  node.lock.Unlock();
  return more;
}

}  // namespace

void GpCleanup(State& state) {
  {
    IrqSpinGuard guard(*state.kernel, state.root().lock);
    const uint64_t took =
        Jiffies(*state.kernel) - state.gp_start_jiffies.Load(std::memory_order_relaxed);
    if (took > state.gp_max_jiffies) state.gp_max_jiffies = took;
    PolledGpEnd(state, &state.gp_seq_polled_snap);
  }
  const uint64_t gp_seq = SeqEnded(state.gp_seq.Load(std::memory_order_relaxed));
  bool more = false;
  for (Node& node : state.nodes) {
    if (CleanUpNode(state, node, gp_seq)) more = true;
  }
  {
    Node& root = state.root();
    IrqSpinGuard guard(*state.kernel, root.lock);
    state.gp_seq.Store(gp_seq, std::memory_order_seq_cst);
    platform::Trace(abi::TraceEvent::kGpEnd, 0, static_cast<uint32_t>(gp_seq));
    SetGpState(state, GpState::kIdle);
    if (SeqLt(root.gp_seq.Load(std::memory_order_relaxed), root.gp_seq_needed)) more = true;
    if (HasSyncWaiters(state)) more = true;
    // Behind the counter: whatever this CPU's callbacks get now is right.
    if (AccelerateCallbacks(root, DataOf(platform::ThisCpu()))) more = true;
    NoteGpActivity(state, Jiffies(*state.kernel));
    if (more) NoteGpRequest(state);
    state.gp_flags.Store(
        more ? kGpFlagInit : state.gp_flags.Load(std::memory_order_relaxed) & kGpFlagInit,
        std::memory_order_seq_cst);
  }
  WakeSyncWaiters(state);
}

namespace {

// Updaters on faster CPUs can ask for the next grace period, and report for it, before the kthread
// comes to wait for either. At its priority nobody else would run on its CPU then, and who is bound
// to it never: so it sleeps all the same now and then.
void LetOthersRun(State& state) {
  constexpr uint64_t kMostAwakeJiffies = 8;
  if (Jiffies(*state.kernel) - state.gp_awake_jiffies < kMostAwakeJiffies) return;
  SleepJiffies(1);
  state.gp_awake_jiffies = Jiffies(*state.kernel);
}

}  // namespace

void GpThread(void* argument) {
  State& state = *static_cast<State*>(argument);
  for (;;) {
    do {
      SetGpState(state, GpState::kWaitGps);
      if (!GpFlagIsSet(state, kGpFlagInit)) {
        state.gp_wq.Wait([&] { return GpFlagIsSet(state, kGpFlagInit); });
        state.gp_awake_jiffies = Jiffies(*state.kernel);
        NoteGpActivity(state, state.gp_awake_jiffies);
      }
      SetGpState(state, GpState::kDoneGps);
    } while (!GpInit(state));
    FqsLoop(state);
    SetGpState(state, GpState::kCleanup);
    GpCleanup(state);
    SetGpState(state, GpState::kCleaned);
    LetOthersRun(state);
  }
}

}  // namespace sipi::rcu
