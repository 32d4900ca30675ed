// The explored updaters: every way to wait for a grace period.
#include "guest/kernel/sched/smp_call.h"
#include "guest/kernel/sched/time.h"
#include "guest/scenario/rcu_explore.h"

namespace sipi::explore {
namespace {

enum class Way : uint32_t {
  kSynchronize,
  kExpedited,
  kCall,             // waits for its own callback
  kCallLater,        // the callback frees; nobody waits
  kBarrier,          // likewise, then a barrier
  kBarrierOfRemote,  // a callback on another CPU, and a barrier
  kCond,
  kCondExpedited,
  kStartPoll,
  kStartPollExpedited,
  kStartPollFull,
  kStartPollExpeditedFull,
  kExpediteGp,  // synchronize_rcu() within rcu_expedite_gp()
};
constexpr uint32_t kWays = 13;

constexpr uint64_t kPatienceJiffies = 500;

// Until done(): a grace period that was asked for has to come by itself.
template <class Done>
void PollUntil(Done done) {
  for (uint64_t i = 0; i < kPatienceJiffies; ++i) {
    if (done()) return;
    SleepJiffies(1);
  }
  SIPI_PANIC("a polled grace period does not end");
}

void Free(rcu::Head& head) {
  auto& element = static_cast<Element&>(head);
  element.freed.Store(1, std::memory_order_release);
  element.pointer->run.FetchAdd(1, std::memory_order_seq_cst);
}

void Called(rcu::Head& head) {
  static_cast<WaitedCall&>(head).pointer->called.Complete(*CurrentThread()->kernel);
}

void CountRemote(rcu::Head& head) {
  auto& call = static_cast<RemoteCall&>(head);
  call.run.FetchAdd(1, std::memory_order_seq_cst);
  call.busy.Store(0, std::memory_order_seq_cst);
}

void CallInInterrupt(void* argument) { QueueRemote(*static_cast<Explore*>(argument)); }

// On the CPU that moves, if one does.
void CallOnAnother(Actor& self) {
  Explore& explore = *self.explore;
  const uint32_t moving = explore.moving.Load(std::memory_order_seq_cst);
  const uint32_t random = self.random.Below(explore.kernel->params->cpu_count);
  const CpuNumber cpu(moving != 0 ? moving / 2 : random);
  (void)CallFunctionSingle(*explore.kernel, cpu, CallInInterrupt, &explore, true);
}

// Waits, or has the element freed by a callback: then true.
bool Pass(Actor& self, Pointer& pointer, Element& old, Way way) {
  Kernel& kernel = *self.explore->kernel;
  switch (way) {
    case Way::kSynchronize:
      rcu::Synchronize(kernel);
      return false;
    case Way::kExpedited:
      rcu::SynchronizeExpedited(kernel);
      return false;
    case Way::kCall:
      pointer.call.pointer = &pointer;
      rcu::CallHurry(kernel, pointer.call, Called);
      pointer.called.Wait();
      return false;
    case Way::kCallLater:
    case Way::kBarrier:
    case Way::kBarrierOfRemote:
      rcu::Call(kernel, old, Free);
      pointer.queued.FetchAdd(1, std::memory_order_seq_cst);
      if (way == Way::kCallLater) return true;
      if (way == Way::kBarrierOfRemote) CallOnAnother(self);
      CheckedBarrier(*self.explore);
      return true;
    case Way::kCond:
      rcu::CondSynchronize(kernel, rcu::GetState(kernel));
      return false;
    case Way::kCondExpedited:
      rcu::CondSynchronizeExpeditedFull(kernel, rcu::GetStateFull(kernel));
      return false;
    case Way::kStartPoll:
    case Way::kStartPollExpedited: {
      const rcu::Cookie cookie =
          way == Way::kStartPoll ? rcu::StartPoll(kernel) : rcu::StartPollExpedited(kernel);
      PollUntil([&] { return rcu::Poll(kernel, cookie); });
      return false;
    }
    case Way::kStartPollFull:
    case Way::kStartPollExpeditedFull: {
      const rcu::FullCookie cookie = way == Way::kStartPollFull
                                         ? rcu::StartPollFull(kernel)
                                         : rcu::StartPollExpeditedFull(kernel);
      PollUntil([&] { return rcu::PollFull(kernel, cookie); });
      return false;
    }
    case Way::kExpediteGp:
      rcu::ExpediteGp(kernel);
      if (!rcu::GpIsExpedited(kernel)) SIPI_PANIC("rcu_expedite_gp() does not expedite");
      rcu::Synchronize(kernel);
      rcu::UnexpediteGp(kernel);
      return false;
  }
  return false;
}

// Bound by the barrier, after which all are free.
uint32_t TakeFreed(Explore& explore, Pointer& pointer, uint32_t current) {
  for (uint32_t tries = 0; tries < 2; ++tries) {
    for (uint32_t i = 0; i < kElements; ++i) {
      if (i != current && pointer.elements[i].freed.Load(std::memory_order_acquire) != 0) return i;
    }
    CheckedBarrier(explore);
  }
  SIPI_PANIC("an element was lost");
}

}  // namespace

void QueueRemote(Explore& explore) {
  for (RemoteCall& call : explore.remote) {
    if (call.busy.Exchange(1, std::memory_order_seq_cst) != 0) continue;
    rcu::Call(*explore.kernel, call, CountRemote);
    call.queued.FetchAdd(1, std::memory_order_seq_cst);
    return;
  }
}

void CheckedBarrier(Explore& explore) {
  uint32_t pointers[kPointers];
  uint32_t remote[kRemoteCalls];
  for (uint32_t i = 0; i < kPointers; ++i) {
    pointers[i] = explore.pointers[i].queued.Load(std::memory_order_seq_cst);
  }
  for (uint32_t i = 0; i < kRemoteCalls; ++i) {
    remote[i] = explore.remote[i].queued.Load(std::memory_order_seq_cst);
  }
  rcu::Barrier(*explore.kernel);
  bool all = true;
  for (uint32_t i = 0; i < kPointers; ++i) {
    all = all && explore.pointers[i].run.Load(std::memory_order_seq_cst) >= pointers[i];
  }
  for (uint32_t i = 0; i < kRemoteCalls; ++i) {
    all = all && explore.remote[i].run.Load(std::memory_order_seq_cst) >= remote[i];
  }
  if (!all) SIPI_PANIC("rcu_barrier() returned before a callback had run");
}

void CheckCallbacks(Explore& explore) {
  bool once = true;
  for (uint32_t i = 0; i < kPointers; ++i) {
    Pointer& pointer = explore.pointers[i];
    once = once && pointer.run.Load(std::memory_order_seq_cst) ==
                       pointer.queued.Load(std::memory_order_seq_cst);
  }
  for (RemoteCall& call : explore.remote) {
    once = once &&
           call.run.Load(std::memory_order_seq_cst) == call.queued.Load(std::memory_order_seq_cst);
  }
  if (!once) SIPI_PANIC("a callback has not run exactly once");
}

void Update(CrewMember& member) {
  auto& self = static_cast<Actor&>(member);
  Explore& explore = *self.explore;
  Kernel& kernel = *explore.kernel;
  Pointer& pointer = explore.pointers[self.index];
  uint32_t current = 0;
  for (uint32_t round = 0; round < explore.rounds; ++round) {
    const uint32_t next = TakeFreed(explore, pointer, current);
    pointer.elements[next].freed.Store(0, std::memory_order_release);
    pointer.at.Store(next, std::memory_order_release);
    Element& old = pointer.elements[current];
    current = next;
    const auto way = static_cast<Way>(self.random.Below(kWays));
    if (self.random.OneIn(3)) MeetHotplug(self);
    if (!Pass(self, pointer, old, way)) old.freed.Store(1, std::memory_order_release);
    explore.updates.FetchAdd(1, std::memory_order_relaxed);
    if (self.random.OneIn(4)) {
      (void)SetAffinity(*CurrentThread(), self.random.Below(kernel.params->cpu_count));
    }
    if (self.random.OneIn(4)) (void)SetAffinity(*CurrentThread(), Thread::kAnyCpu);
    if (self.random.OneIn(2)) SleepSomewhat(self.random, 5'000);
  }
}

}  // namespace sipi::explore
