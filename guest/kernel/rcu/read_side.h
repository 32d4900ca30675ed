// The read side, inline. Which flavour a machine has is a knob of its boot; benchmarks that want
// one of them alone take its own functions.
#pragma once

#include <atomic>

#include "guest/kernel/rcu/rcu.h"

namespace sipi::rcu {

// In blocked.cc: the thread has left its outermost reader and something is to be looked at.
[[gnu::noinline]] void ReadUnlockSpecial(Thread& thread);

// Keeps the compiler from moving what is inside a reader out of it. The CPU need not be kept from
// it: a grace period orders every CPU's accesses itself.
[[gnu::always_inline]] inline void CompilerBarrier() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

// --- Preemptible: the thread counts.
[[gnu::always_inline]] inline void PreemptibleReadLock(Thread& thread) {
  ++thread.rcu.read_nesting;
  CompilerBarrier();
}
[[gnu::always_inline]] inline void PreemptibleReadUnlock(Thread& thread) {
  CompilerBarrier();
  const uint32_t nesting = --thread.rcu.read_nesting;
  CompilerBarrier();
  if (nesting == 0 && thread.rcu.special.any()) [[unlikely]]
    ReadUnlockSpecial(thread);
}

// --- Non-preemptible, in a kernel without preemption: nothing but that the compiler stays in it.
[[gnu::always_inline]] inline void NonPreemptibleReadLock() { CompilerBarrier(); }
[[gnu::always_inline]] inline void NonPreemptibleReadUnlock() { CompilerBarrier(); }

// --- Whichever the machine has. No thread: one CPU, one context, and no grace period waits.
inline ReaderKind ReaderKindOf(const abi::KernelKnobs& knobs) {
  if (knobs.rcu_flavour == abi::RcuFlavour::kPreemptible) return ReaderKind::kCounts;
  const bool preempts =
      knobs.preemption == abi::Preemption::kFull || knobs.preemption == abi::Preemption::kLazy;
  return preempts ? ReaderKind::kDisablesPreemption : ReaderKind::kNothing;
}

[[gnu::always_inline]] inline void ReadLock() {
  Thread* thread = CurrentThread();
  if (thread == nullptr) return;
  switch (thread->rcu.reader_kind) {
    case ReaderKind::kCounts:
      return PreemptibleReadLock(*thread);
    case ReaderKind::kDisablesPreemption:
      return PreemptDisable();
    case ReaderKind::kNothing:
      return NonPreemptibleReadLock();
  }
}

[[gnu::always_inline]] inline void ReadUnlock() {
  Thread* thread = CurrentThread();
  if (thread == nullptr) return;
  switch (thread->rcu.reader_kind) {
    case ReaderKind::kCounts:
      return PreemptibleReadUnlock(*thread);
    case ReaderKind::kDisablesPreemption:
      return PreemptEnable();
    case ReaderKind::kNothing:
      return NonPreemptibleReadUnlock();
  }
}

}  // namespace sipi::rcu
