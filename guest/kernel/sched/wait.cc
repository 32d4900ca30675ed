#include "guest/kernel/sched/wait.h"

namespace sipi {
namespace {

constexpr uint32_t kAll = 1u << 31;

}  // namespace

void WaitQueue::Add(Thread& thread) {
  IrqSpinGuard guard(*thread.kernel, lock_);
  if (thread.waits) return;
  thread.waits = true;
  thread.next_waiter = nullptr;
  thread.previous_waiter = last_;
  (last_ != nullptr ? last_->next_waiter : first_) = &thread;
  last_ = &thread;
  // A locked write: whoever wakes looks at it after having stored, the thread at what was stored
  // after this.
  count_.FetchAdd(1, std::memory_order_seq_cst);
}

bool WaitQueue::Remove(Thread& thread) {
  IrqSpinGuard guard(*thread.kernel, lock_);
  if (!thread.waits) return false;
  thread.waits = false;
  (thread.previous_waiter != nullptr ? thread.previous_waiter->next_waiter : first_) =
      thread.next_waiter;
  (thread.next_waiter != nullptr ? thread.next_waiter->previous_waiter : last_) =
      thread.previous_waiter;
  count_.FetchAdd(~0u, std::memory_order_relaxed);
  return true;
}

Thread* WaitQueue::TakeFirst(Kernel& kernel) {
  IrqSpinGuard guard(kernel, lock_);
  return TakeFirstLocked();
}

Thread* WaitQueue::TakeFirstLocked() {
  Thread* const thread = first_;
  if (thread == nullptr) return nullptr;
  thread->waits = false;
  first_ = thread->next_waiter;
  (first_ != nullptr ? first_->previous_waiter : last_) = nullptr;
  count_.FetchAdd(~0u, std::memory_order_relaxed);
  return thread;
}

bool WaitQueue::SleepOnce(Thread& current, platform::Deadline deadline) {
  if (!platform::Bounded(deadline)) {
    Schedule();
    return true;
  }
  if (platform::Expired(deadline)) return false;
  StartTimer(current.timer, deadline);
  Schedule();
  (void)StopTimer(*current.kernel, current.timer);
  return true;
}

bool WaitQueue::Leave(Thread& current) {
  CancelBlock(current);
  return Remove(current);
}

bool WaitQueue::WakeOne(Kernel& kernel) {
  // A locked access, behind which the caller's store is seen.
  if (count_.FetchAdd(0, std::memory_order_seq_cst) == 0) return false;
  // Those that do not sleep any more have other reasons to go on.
  while (Thread* const thread = TakeFirst(kernel)) {
    if (WakeUp(*thread)) return true;
  }
  return false;
}

void WaitQueue::WakeAll(Kernel& kernel) {
  uint32_t count = count_.FetchAdd(0, std::memory_order_seq_cst);
  for (; count != 0; --count) {
    Thread* const thread = TakeFirst(kernel);
    if (thread == nullptr) return;
    (void)WakeUp(*thread);
  }
}

bool Completion::Take() {
  uint32_t done = done_.Load(std::memory_order_acquire);
  while (done != 0) {
    if ((done & kAll) != 0) return true;
    if (done_.Ref().CompareExchange(done, done - 1, std::memory_order_acquire)) return true;
  }
  return false;
}

void Completion::Complete(Kernel& kernel) {
  done_.FetchAdd(1, std::memory_order_seq_cst);
  (void)waiters_.WakeOne(kernel);
}

void Completion::CompleteAll(Kernel& kernel) {
  done_.Exchange(kAll, std::memory_order_seq_cst);
  waiters_.WakeAll(kernel);
}

void Completion::Wait() {
  waiters_.Wait([this] { return Take(); });
}

bool Completion::WaitUntil(platform::Deadline deadline) {
  return waiters_.WaitUntil([this] { return Take(); }, deadline);
}

void Completion::Reset() { done_.Store(0, std::memory_order_relaxed); }

bool Mutex::TryLock() {
  uint32_t expected = kFree;
  return owner_.Ref().CompareExchange(expected, kHeld, std::memory_order_acquire);
}

bool Mutex::Take(const Thread& current) {
  const uint32_t owner = owner_.Load(std::memory_order_acquire);
  if (owner == kFree) return TryLock();
  if (owner != kHandedTo + current.number) return false;
  owner_.Store(kHeld, std::memory_order_relaxed);
  return true;
}

void Mutex::Lock() {
  if (TryLock()) return;
  Thread& current = *CurrentThread();
  for (;;) {
    PrepareToBlock(current);
    waiters_.Add(current);
    if (Take(current)) break;
    Schedule();
    if (Take(current)) break;
  }
  (void)waiters_.Leave(current);
}

void Mutex::Unlock() {
  Kernel& kernel = *CurrentThread()->kernel;
  Thread* heir = nullptr;
  {
    IrqSpinGuard guard(kernel, waiters_.lock_);
    heir = waiters_.TakeFirstLocked();
    owner_.Store(heir != nullptr ? kHandedTo + heir->number : kFree, std::memory_order_release);
  }
  // If it is awake, it looks by itself.
  if (heir != nullptr) (void)WakeUp(*heir);
}

}  // namespace sipi
