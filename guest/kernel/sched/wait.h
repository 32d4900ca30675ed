// Sleeping waits: wait queues, completions, mutexes. None of these objects may lie on a stack (the
// simulator's shared words are in the machine's memory); take them from Allocate or put them into a
// structure that is. All waits: thread context, preemption and interrupts enabled.
#pragma once

#include "guest/kernel/sched/lock.h"

namespace sipi {

class WaitQueue {
 public:
  // Sleeps until pred(). Whoever makes it true calls WakeAll or WakeOne afterwards.
  template <class Pred>
  void Wait(Pred pred);
  // False: the deadline came first.
  template <class Pred>
  bool WaitUntil(Pred pred, platform::Deadline deadline);
  void WakeAll(Kernel& kernel);  // any context
  bool WakeOne(Kernel& kernel);

 private:
  struct Entry;
  void Add(Thread& thread);
  void Remove(Thread& thread);
  SpinLock lock_;
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
  platform::Atomic<uint32_t> done_{0};
  WaitQueue waiters_;
};

class Mutex {
 public:
  void Lock();
  bool TryLock();
  void Unlock();

 private:
  platform::Atomic<uint32_t> owner_{0};  // 0 free, 1 held
  WaitQueue waiters_;
};

}  // namespace sipi
