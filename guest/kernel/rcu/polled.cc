// Polled and conditional grace periods: a cookie now, and later the question whether a grace period
// has passed since. The short cookie counts periods of either kind in one counter, gp_seq_polled;
// of two that overlap whichever ends first ends the number, and the other one ends none, so a
// cookie may need one grace period more. The full cookie has both kinds' own counters and misses
// nothing.
#include "guest/kernel/rcu/exp.h"

namespace sipi::rcu {
namespace {

// All that the caller has done before comes before what is read.
uint64_t Fenced(platform::Atomic<uint64_t>& counter) {
  return counter.FetchAdd(0, std::memory_order_seq_cst);
}

// The end of the normal grace period after which a cookie from before this call is done, if no
// expedited one does it sooner. A number that runs and that the running normal one will not end, be
// it that there is none, is an expedited one's: the next normal one may join it and be overtaken,
// so that it ends no number at all. So one more.
uint64_t EndForCookies(State& state) {
  IrqSpinGuard guard(*state.kernel, state.root().lock);
  const uint64_t polled = state.gp_seq_polled.Load(std::memory_order_seq_cst);
  const bool anothers = SeqState(polled) != 0 && state.gp_seq_polled_snap != polled;
  const uint64_t one_more = anothers ? uint64_t{1} << kSeqShift : 0;
  return SeqSnap(state.gp_seq.Load(std::memory_order_seq_cst)) + one_more;
}

// What EndForCookies saw may be old by the time it is asked for: the cookie is older.
void AskForNormal(State& state) {
  const uint64_t end = EndForCookies(state);
  bool wake = false;
  {
    IrqGuard irq;
    Data& data = DataOf(platform::ThisCpu());
    IrqSpinGuard guard(*state.kernel, data.leaf->lock);
    wake = StartFutureGp(*data.leaf, data, end);
  }
  if (wake) WakeGpThread(state);
}

Node& ThisLeaf() {
  PreemptGuard guard;
  return *DataOf(platform::ThisCpu()).leaf;
}

// Has the leaf's work wait for an expedited grace period, unless it does so already.
void AskForExpedited(State& state, Cookie cookie) {
  if (!ExpWorkersRun(state)) return;  // whoever asks later will have to wait itself
  Node& leaf = ThisLeaf();
  {
    IrqSpinGuard guard(*state.kernel, leaf.exp_poll_lock);
    if (Poll(*state.kernel, cookie)) return;
    const uint64_t before = leaf.exp_poll_seq.Load(std::memory_order_relaxed);
    if (before == kCompletedCookie || SeqLt(before, cookie)) {
      leaf.exp_poll_seq.Store(cookie, std::memory_order_seq_cst);
    }
  }
  (void)QueueWork(*state.kernel, state.exp_poll_worker, leaf.exp_poll_work);
}

}  // namespace

void PolledGpStart(State& state, uint64_t* snap) {
  uint64_t now = state.gp_seq_polled.Load(std::memory_order_relaxed);
  if (SeqState(now) == 0) {
    now = SeqStarted(now);
    state.gp_seq_polled.Exchange(now, std::memory_order_seq_cst);
  }
  *snap = now;
}

void PolledGpEnd(State& state, uint64_t* snap) {
  const uint64_t now = state.gp_seq_polled.Load(std::memory_order_relaxed);
  if (*snap != 0 && *snap == now) {
    state.gp_seq_polled.Exchange(SeqEnded(now), std::memory_order_seq_cst);
    // The other kind's, if it runs, shared this number and has none to end any more.
    state.gp_seq_polled_snap = 0;
    state.gp_seq_polled_exp_snap = 0;
  } else {
    *snap = 0;
  }
}

Cookie GetState(Kernel& kernel) { return SeqSnap(Fenced(StateOf(kernel).gp_seq_polled)); }

Cookie StartPoll(Kernel& kernel) {
  const Cookie cookie = GetState(kernel);
  AskForNormal(StateOf(kernel));
  return cookie;
}

Cookie StartPollExpedited(Kernel& kernel) {
  const Cookie cookie = GetState(kernel);
  AskForExpedited(StateOf(kernel), cookie);
  return cookie;
}

bool Poll(Kernel& kernel, Cookie cookie) {
  return cookie == kCompletedCookie || SeqDoneExact(Fenced(StateOf(kernel).gp_seq_polled), cookie);
}

void CondSynchronize(Kernel& kernel, Cookie cookie) {
  if (!Poll(kernel, cookie)) Synchronize(kernel);
}

void CondSynchronizeExpedited(Kernel& kernel, Cookie cookie) {
  if (!Poll(kernel, cookie)) SynchronizeExpedited(kernel);
}

FullCookie GetStateFull(Kernel& kernel) {
  State& state = StateOf(kernel);
  // Not the root's, which says later that a grace period has begun: a CPU that comes up between
  // the hotplug scan and that is not waited for, so its cookies must not count on this one.
  const uint64_t normal = SeqSnap(Fenced(state.gp_seq));
  return {normal, SnapExpSequence(state)};
}

FullCookie StartPollFull(Kernel& kernel) {
  const FullCookie cookie = GetStateFull(kernel);
  AskForNormal(StateOf(kernel));
  return cookie;
}

FullCookie StartPollExpeditedFull(Kernel& kernel) {
  const FullCookie cookie = GetStateFull(kernel);
  AskForExpedited(StateOf(kernel), GetState(kernel));
  return cookie;
}

bool PollFull(Kernel& kernel, const FullCookie& cookie) {
  State& state = StateOf(kernel);
  // The root's, which is first to say that one has ended.
  return SeqDoneExact(Fenced(state.root().gp_seq), cookie.normal) ||
         SeqDoneExact(Fenced(state.expedited_sequence), cookie.expedited);
}

void CondSynchronizeFull(Kernel& kernel, const FullCookie& cookie) {
  if (!PollFull(kernel, cookie)) Synchronize(kernel);
}

void CondSynchronizeExpeditedFull(Kernel& kernel, const FullCookie& cookie) {
  if (!PollFull(kernel, cookie)) SynchronizeExpedited(kernel);
}

void PollWorkFunction(Work& work) {
  Node& leaf = *static_cast<NodeWork&>(work).node;
  Kernel& kernel = *leaf.state->kernel;
  for (;;) {
    const Cookie cookie = leaf.exp_poll_seq.Exchange(kCompletedCookie, std::memory_order_seq_cst);
    if (cookie == kCompletedCookie) return;
    while (!Poll(kernel, cookie)) SynchronizeExpedited(kernel);
  }
}

}  // namespace sipi::rcu
