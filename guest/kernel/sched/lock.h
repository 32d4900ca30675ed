// Spinlocks. Held for a handful of instructions, with preemption disabled; interrupt handlers take
// them too where said so (IrqSpinGuard). A waiter spins politely (guest/platform/platform.h) and is
// bounded: a lock that never comes free is a panic.
#pragma once

#include "guest/kernel/call.h"
#include "guest/kernel/sched/thread.h"

namespace sipi {

class SpinLock {
 public:
  // Preemption disabled by the caller, who holds no lock of the same kind but in the documented
  // order.
  void Lock(Kernel& kernel) { LockShort(kernel, word_); }
  bool TryLock() { return word_.Exchange(1, std::memory_order_acquire) == 0; }
  void Unlock() { UnlockShort(word_); }

 private:
  platform::Atomic<uint32_t> word_{0};
};

class SpinGuard {
 public:
  SpinGuard(Kernel& kernel, SpinLock& lock) : lock_(lock) { lock_.Lock(kernel); }
  ~SpinGuard() { lock_.Unlock(); }
  SpinGuard(const SpinGuard&) = delete;
  SpinGuard& operator=(const SpinGuard&) = delete;

 private:
  PreemptGuard preempt_;
  SpinLock& lock_;
};

// With interrupts off.
class IrqSpinGuard {
 public:
  IrqSpinGuard(Kernel& kernel, SpinLock& lock) : lock_(lock) { lock_.Lock(kernel); }
  ~IrqSpinGuard() { lock_.Unlock(); }
  IrqSpinGuard(const IrqSpinGuard&) = delete;
  IrqSpinGuard& operator=(const IrqSpinGuard&) = delete;

 private:
  IrqGuard irq_;
  SpinLock& lock_;
};

}  // namespace sipi
