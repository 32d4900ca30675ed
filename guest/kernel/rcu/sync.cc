// synchronize_rcu(). A normal one waits in one of two ways: by a callback of its own, or, with
// rcu_normal_wake_from_gp, on a list that the grace-period kthread takes before a grace period
// starts and wakes after its end.
#include "guest/kernel/rcu/internal.h"

namespace sipi::rcu {
namespace {

using abi::GracePeriodKind;

constexpr uint32_t kWokenDirectly = 5;  // by the kthread itself; a worker wakes the rest
// waiters: from here on callbacks, until all of them are gone
constexpr uint32_t kLatchAt = 64;

void Wake(SyncWaiter& waiter) {
  Thread& thread = *waiter.thread;
  waiter.done.Store(1, std::memory_order_seq_cst);
  WakeUp(thread);
}

// The waiter is its callback's first member.
void WakeByCallback(Head& head) { Wake(reinterpret_cast<SyncWaiter&>(head)); }

void Sleep(Thread& self) {
  while (self.rcu.sync.done.Load(std::memory_order_acquire) == 0) {
    PrepareToBlock(self);
    if (self.rcu.sync.done.Load(std::memory_order_seq_cst) != 0) return CancelBlock(self);
    Schedule();
  }
}

void Append(SyncList& list, SyncWaiter& waiter) {
  waiter.next = nullptr;
  (list.last == nullptr ? list.first : list.last->next) = &waiter;
  list.last = &waiter;
}

void MoveAll(SyncList& from, SyncList& to) {
  if (from.first == nullptr) return;
  (to.last == nullptr ? to.first : to.last->next) = from.first;
  to.last = from.last;
  from = {};
}

SyncWaiter* TakeFirst(SyncList& list) {
  SyncWaiter* first = list.first;
  if (first == nullptr) return nullptr;
  list.first = first->next;
  if (list.first == nullptr) list.last = nullptr;
  return first;
}

// True: there was one, and it runs again.
bool WakeNext(State& state) {
  SyncWaiter* waiter = nullptr;
  {
    IrqSpinGuard guard(*state.kernel, state.sync_lock);
    waiter = TakeFirst(state.sync_done);
  }
  if (waiter == nullptr) return false;
  if (state.sync_count.FetchAdd(~0u, std::memory_order_acq_rel) == 1)
    state.sync_latched.Store(0, std::memory_order_relaxed);
  Wake(*waiter);
  return true;
}

void WakeTheRest(Work& work) {
  State& state = *static_cast<StateWork&>(work).state;
  while (WakeNext(state)) CondResched();
}

bool KthreadWakes(State& state) {
  return state.normal_wake_from_gp.Load(std::memory_order_relaxed) != 0 &&
         state.sync_latched.Load(std::memory_order_relaxed) == 0;
}

void WaitOnList(State& state, Thread& self) {
  if (state.sync_count.FetchAdd(1, std::memory_order_acq_rel) + 1 >= kLatchAt)
    state.sync_latched.Store(1, std::memory_order_relaxed);
  {
    IrqSpinGuard guard(*state.kernel, state.sync_lock);
    Append(state.sync_next, self.rcu.sync);
  }
  (void)RequestGp(state);
  Sleep(self);
}

bool SchedulerIs(State& state, SchedulerState scheduler) {
  return state.scheduler_state.Load(std::memory_order_acquire) == static_cast<uint32_t>(scheduler);
}

void TraceSync(abi::TraceEvent event, GracePeriodKind kind) {
  platform::Trace(event, 0, static_cast<uint32_t>(kind));
}

}  // namespace

void TakeSyncWaiters(State& state) {
  IrqSpinGuard guard(*state.kernel, state.sync_lock);
  MoveAll(state.sync_next, state.sync_now);
}

bool HasSyncWaiters(State& state) {
  SIPI_ASSERT(!platform::IrqsEnabled());
  state.sync_lock.Lock(*state.kernel);
  const bool any = state.sync_next.first != nullptr;
  state.sync_lock.Unlock();
  return any;
}

void WakeSyncWaiters(State& state) {
  {
    IrqSpinGuard guard(*state.kernel, state.sync_lock);
    MoveAll(state.sync_now, state.sync_done);
    if (state.sync_done.first == nullptr) return;
  }
  for (uint32_t i = 0; i < kWokenDirectly; ++i) {
    if (!WakeNext(state)) return;
  }
  // False: it is at it, and comes to these too.
  (void)QueueWork(*state.kernel, state.sync_worker, state.sync_work);
}

void SpawnSyncThread(State& state) {
  state.sync_work.function = WakeTheRest;
  state.sync_work.state = &state;
  StartWorker(*state.kernel, state.sync_worker, {.name = "rcu_sync_wake"});
}

void PassVacuousGp(State& state) {
  IrqGuard irq;
  state.root().lock.Lock(*state.kernel);
  PolledGpStart(state, &state.gp_seq_polled_snap);
  PolledGpEnd(state, &state.gp_seq_polled_snap);
  state.root().lock.Unlock();
  // Nobody has asked for a grace period and no CPU looks for one: the counters can simply go on.
  const uint64_t gp_seq = SeqEnded(state.gp_seq.Load(std::memory_order_relaxed));
  state.gp_seq.Store(gp_seq, std::memory_order_seq_cst);
  for (Node& node : state.nodes) {
    node.gp_seq.Store(gp_seq, std::memory_order_relaxed);
    if (SeqLt(node.gp_seq_needed, gp_seq)) node.gp_seq_needed = gp_seq;
  }
}

bool SetNormalWakeFromGp(Kernel& kernel, bool on) {
  return StateOf(kernel).normal_wake_from_gp.Exchange(on ? 1 : 0, std::memory_order_seq_cst) != 0;
}

void SynchronizeNormal(State& state) {
  TraceSync(abi::TraceEvent::kSyncBegin, GracePeriodKind::kNormal);
  if (SchedulerIs(state, SchedulerState::kInactive)) {
    PassVacuousGp(state);
    return TraceSync(abi::TraceEvent::kSyncEnd, GracePeriodKind::kNone);
  }
  Thread& self = *CurrentThread();
  self.rcu.sync.thread = &self;
  self.rcu.sync.done.Store(0, std::memory_order_relaxed);
  if (KthreadWakes(state)) {
    WaitOnList(state, self);
  } else {
    CallHurry(*state.kernel, self.rcu.sync.head, WakeByCallback);
    Sleep(self);
  }
  TraceSync(abi::TraceEvent::kSyncEnd, GracePeriodKind::kNormal);
}

void Synchronize(Kernel& kernel) {
  if (kernel.rcu == nullptr) {
    TraceSync(abi::TraceEvent::kSyncBegin, GracePeriodKind::kNormal);
    return TraceSync(abi::TraceEvent::kSyncEnd, GracePeriodKind::kNone);
  }
  State& state = *kernel.rcu;
  // Without RCU's threads nobody would run a normal one.
  if (SchedulerIs(state, SchedulerState::kInit) || GpIsExpedited(kernel))
    return SynchronizeExpedited(kernel);
  SynchronizeNormal(state);
}

}  // namespace sipi::rcu
