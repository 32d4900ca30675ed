// rcu_sync in the kernel: the machine of rcu_sync_machine.h with its lock, its waits and its
// callback.
#pragma once

#include "guest/kernel/hotplug/rcu_sync_machine.h"
#include "guest/kernel/rcu/rcu.h"
#include "guest/kernel/sched/wait.h"

namespace sipi {

// Lies in machine memory (guest/kernel/alloc.h).
class RcuSync {
 public:
  void Init(Kernel& kernel) { kernel_ = &kernel; }

  // Readers: may they take the fast path? Inside a non-preemptible section, which the grace period
  // waits for. Any context.
  bool IsIdle() { return state_.Load(std::memory_order_relaxed) == 0; }

  // Returns when no reader takes the fast path any more. Waits for a grace period only where none
  // is in force; nests. Thread context, preemptible.
  void Enter();
  // Lets readers have their fast path back a grace period later. Thread context.
  void Exit();

 private:
  // First member: the callback finds its RcuSync by it.
  rcu::Head head_;
  Kernel* kernel_ = nullptr;
  platform::Atomic<uint32_t> state_{0};  // machine_.state(), for those who hold no lock
  SpinLock lock_;
  RcuSyncMachine machine_;  // guarded by lock_
  WaitQueue passed_;

  static void OnGracePeriod(rcu::Head& head);
  void GpPassed();
  void Do(RcuSyncMachine::Action action);
  void Publish();
};

}  // namespace sipi
