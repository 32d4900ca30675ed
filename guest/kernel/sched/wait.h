// Sleeping waits: wait queues, completions, mutexes. None of these objects may lie on a stack (the
// simulator's shared words are in the machine's memory); take them from Allocate or put them into a
// structure that is. All waits: thread context, preemption and interrupts enabled.
#pragma once

#include "guest/kernel/sched/lock.h"
#include "guest/kernel/sched/time.h"

namespace sipi {

class Mutex;

class WaitQueue {
 public:
  // Sleeps until pred(), which must not sleep itself. Whoever makes it true calls WakeAll or
  // WakeOne afterwards.
  template <class Pred>
  void Wait(Pred pred) {
    (void)WaitUntil(pred, platform::NoDeadline());
  }
  // False: the deadline came first.
  template <class Pred>
  bool WaitUntil(Pred pred, platform::Deadline deadline) {
    if (pred()) return true;
    Thread& current = *CurrentThread();
    bool met = false;
    for (bool over = false; !over;) {
      PrepareToBlock(current);
      Add(current);
      met = pred();
      over = met || !SleepOnce(current, deadline);
    }
    // Whoever was woken and had no need of it passes it on: it found its condition true by itself,
    // or its deadline over. One wake-up too many does no harm.
    if (!Leave(current)) (void)WakeOne(*current.kernel);
    return met;
  }
  // Any context. What makes a condition true is stored before, in any order.
  void WakeAll(Kernel& kernel);
  bool WakeOne(Kernel& kernel);  // the one that waits longest; false: nobody did

 private:
  friend class Mutex;

  void Add(Thread& thread);
  bool Remove(Thread& thread);  // false: somebody has taken it out to wake it
  Thread* TakeFirst(Kernel& kernel);
  Thread* TakeFirstLocked();
  bool SleepOnce(Thread& current, platform::Deadline deadline);  // false: the deadline is over
  bool Leave(Thread& current);

  SpinLock lock_;
  platform::Atomic<uint32_t> count_{0};
  // Guarded by the lock.
  Thread* first_ = nullptr;
  Thread* last_ = nullptr;
};

class Completion {
 public:
  void Complete(Kernel& kernel);     // lets one waiter through; any context
  void CompleteAll(Kernel& kernel);  // all, from now on
  void Wait();
  bool WaitUntil(platform::Deadline deadline);
  void Reset();

 private:
  bool Take();
  platform::Atomic<uint32_t> done_{0};
  WaitQueue waiters_;
};

// Fair: whoever unlocks hands it to the one that waits longest, and nobody comes in between. (Linux
// lets others in until a waiter has been woken in vain, then hands it over too:
// kernel/locking/mutex.c.)
class Mutex {
 public:
  void Lock();
  bool TryLock();
  void Unlock();

 private:
  bool Take(const Thread& current);

  // Free, held, or handed to a thread that has not seen it yet: kHandedTo and its number. It
  // becomes free, or is handed over, under the lock of `waiters_`: whoever adds itself there has
  // either been seen, or finds it free.
  platform::Atomic<uint32_t> owner_{kFree};
  WaitQueue waiters_;

  static constexpr uint32_t kFree = 0;
  static constexpr uint32_t kHeld = 1;
  static constexpr uint32_t kHandedTo = 2;
};

}  // namespace sipi
