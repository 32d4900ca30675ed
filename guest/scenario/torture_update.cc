// Torture's ways to wait for a grace period, and the fake writers that go through them at random.
//
// Checks: a cookie from within a section is not done there; one from before a wait is done after
// it; there are never more cookies about that are not done than grace periods that can be under way
// or asked for.
#include "guest/kernel/rcu/read_side.h"
#include "guest/kernel/sched/time.h"
#include "guest/scenario/torture.h"

namespace sipi::torture {
namespace {

using abi::TortureCheck;
using abi::TortureUpdate;

// The one that is under way and the next: NUM_ACTIVE_RCU_POLL_OLDSTATE, and .._FULL_OLDSTATE.
constexpr uint32_t kActiveCookies = 2;
constexpr uint32_t kActiveFullCookies = 4;

bool Done(Kernel& kernel, rcu::Cookie cookie) { return rcu::Poll(kernel, cookie); }
bool Done(Kernel& kernel, const rcu::FullCookie& cookie) { return rcu::PollFull(kernel, cookie); }
bool Same(rcu::Cookie a, rcu::Cookie b) { return a == b; }
bool Same(const rcu::FullCookie& a, const rcu::FullCookie& b) {
  return a.normal == b.normal && a.expedited == b.expedited;
}

// Different cookies that are not done.
template <class Cookie, uint32_t kMost>
class ActiveCookies {
 public:
  // False: there are too many.
  bool Add(Kernel& kernel, const Cookie& cookie) {
    for (uint32_t i = 0; i < count_; ++i) {
      if (!Same(cookies_[i], cookie) && !Done(kernel, cookies_[i])) continue;
      cookies_[i] = cookie;
      return true;
    }
    if (count_ == kMost) return false;
    cookies_[count_++] = cookie;
    return true;
  }

 private:
  Cookie cookies_[kMost] = {};
  uint32_t count_ = 0;
};

// Polls until the cookie is done, and has a look at the cookies that one gets meanwhile.
template <uint32_t kMost, class Cookie>
void PollUntilDone(Actor& self, const Cookie& cookie, Cookie (*get)(Kernel&)) {
  Kernel& kernel = *self.torture->kernel;
  ActiveCookies<Cookie, kMost> active;
  while (!Done(kernel, cookie)) {
    ++self.tally.counts.cookie_checks;
    if (!active.Add(kernel, get(kernel))) Fail(self.tally, TortureCheck::kTooManyCookies);
    SleepJiffies(1);
  }
}

struct CallbackWait : rcu::Head {
  Torture* torture = nullptr;
  Completion* done = nullptr;
};

struct FakeWriter : Actor {
  Completion called;
  CallbackWait head;
};

void Called(rcu::Head& head) {
  auto& wait = static_cast<CallbackWait&>(head);
  CountCallback(*wait.torture);
  wait.done->Complete(*wait.torture->kernel);
}

// A delay between a cookie and its use: a grace period may pass meanwhile, or may not.
void Dawdle(Actor& self) {
  if (self.random.OneIn(2)) RandomSleep(self, 20'000);
}

void Wait(Actor& self, TortureUpdate kind) {
  Kernel& kernel = *self.torture->kernel;
  switch (kind) {
    case TortureUpdate::kCall:
    case TortureUpdate::kSync:
      return rcu::Synchronize(kernel);
    case TortureUpdate::kSyncExp:
      return rcu::SynchronizeExpedited(kernel);
    case TortureUpdate::kCond: {
      const rcu::Cookie cookie = rcu::GetState(kernel);
      Dawdle(self);
      return rcu::CondSynchronize(kernel, cookie);
    }
    case TortureUpdate::kCondExp: {
      const rcu::Cookie cookie = rcu::GetState(kernel);
      Dawdle(self);
      return rcu::CondSynchronizeExpedited(kernel, cookie);
    }
    case TortureUpdate::kCondFull: {
      const rcu::FullCookie cookie = rcu::GetStateFull(kernel);
      Dawdle(self);
      return rcu::CondSynchronizeFull(kernel, cookie);
    }
    case TortureUpdate::kCondExpFull: {
      const rcu::FullCookie cookie = rcu::GetStateFull(kernel);
      Dawdle(self);
      return rcu::CondSynchronizeExpeditedFull(kernel, cookie);
    }
    case TortureUpdate::kPoll:
      return PollUntilDone<kActiveCookies>(self, rcu::StartPoll(kernel), rcu::GetState);
    case TortureUpdate::kPollExp:
      return PollUntilDone<kActiveCookies>(self, rcu::StartPollExpedited(kernel), rcu::GetState);
    case TortureUpdate::kPollFull:
      return PollUntilDone<kActiveFullCookies>(self, rcu::StartPollFull(kernel), rcu::GetStateFull);
    case TortureUpdate::kPollExpFull:
      return PollUntilDone<kActiveFullCookies>(self, rcu::StartPollExpeditedFull(kernel),
                                               rcu::GetStateFull);
    case TortureUpdate::kBarrier:
      return rcu::Barrier(kernel);
  }
}

void FakeWrite(CrewMember& member) {
  auto& self = static_cast<FakeWriter&>(member);
  constexpr uint32_t kOneBarrierIn = 32;  // rcutorture: 8 per fake writer
  Torture& torture = *self.torture;
  while (!torture.stopping()) {
    RandomSleep(self, 10'000);
    const TortureUpdate kind =
        self.random.OneIn(kOneBarrierIn) ? TortureUpdate::kBarrier : RandomUpdate(self.random);
    CountUpdate(self.tally, kind);
    if (kind == TortureUpdate::kCall) {
      QueueCallback(torture, self.head, Called);
      self.called.Wait();
    } else {
      WaitForGracePeriod(self, kind);
    }
    if (self.random.OneIn(64)) RandomMove(self);
  }
}

// One grace period of either kind ends a full cookie. A short one may take two (polled.cc), unless
// it is just that what is waited for.
bool WaitsForFullCookies(TortureUpdate kind) {
  switch (kind) {
    case TortureUpdate::kCall:
    case TortureUpdate::kSync:
    case TortureUpdate::kSyncExp:
    case TortureUpdate::kCondFull:
    case TortureUpdate::kCondExpFull:
    case TortureUpdate::kPollFull:
    case TortureUpdate::kPollExpFull:
      return true;
    default:
      return false;
  }
}
bool WaitsForShortCookies(TortureUpdate kind) {
  return kind == TortureUpdate::kPoll || kind == TortureUpdate::kPollExp;
}

}  // namespace

void CountUpdate(Tally& tally, TortureUpdate kind) {
  ++tally.counts.updates;
  ++tally.counts.updates_by_kind[static_cast<uint32_t>(kind)];
}

void WaitForGracePeriod(Actor& self, TortureUpdate kind) {
  Kernel& kernel = *self.torture->kernel;
  rcu::ReadLock();
  const rcu::Cookie cookie = rcu::GetState(kernel);
  const rcu::FullCookie full = rcu::GetStateFull(kernel);
  if (rcu::Poll(kernel, cookie) || rcu::PollFull(kernel, full)) {
    Fail(self.tally, TortureCheck::kCookieInReader);
  }
  rcu::ReadUnlock();
  self.tally.counts.cookie_checks += 2;
  Wait(self, kind);
  if (WaitsForFullCookies(kind)) {
    ++self.tally.counts.cookie_checks;
    if (!rcu::PollFull(kernel, full)) Fail(self.tally, TortureCheck::kCookieNotDone);
  }
  const bool again = kind == TortureUpdate::kSync || kind == TortureUpdate::kSyncExp;
  if (again && self.random.OneIn(4)) {
    Wait(self, kind);
  } else if (!WaitsForShortCookies(kind)) {
    return;
  }
  ++self.tally.counts.cookie_checks;
  if (!rcu::Poll(kernel, cookie)) Fail(self.tally, TortureCheck::kCookieNotDone);
}

TortureUpdate RandomUpdate(Random& random) {
  // All but the barrier, which is not a wait for a grace period.
  return static_cast<TortureUpdate>(random.Below(static_cast<uint32_t>(TortureUpdate::kBarrier)));
}

void SpawnFakeWriters(Torture& torture) {
  constexpr uint32_t kStream = 0x60000;
  for (uint32_t i = 0; i < torture.fake_writers; ++i) {
    auto& writer = MakeActor<FakeWriter>(torture, kStream + i, FakeWrite);
    writer.head.torture = &torture;
    writer.head.done = &writer.called;
    torture.crew->Spawn(writer, {.name = "torture_fake/%", .index = i});
  }
}

}  // namespace sipi::torture
