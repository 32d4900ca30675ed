// What RCU keeps in each thread.
#pragma once

#include <cstdint>

#include "guest/kernel/rcu/head.h"
#include "guest/platform/platform.h"

namespace sipi {
struct Thread;
}

namespace sipi::rcu {

struct Node;

// What the outermost rcu_read_unlock() has to look at. Set by the thread's own CPU, from interrupts
// too: so each is a byte of its own. Looked at as one word: compilers load the bytes one by one.
struct Special {
  uint8_t blocked = 0;      // it was switched out inside a reader, and is on a leaf's list
  uint8_t need_qs = 0;      // the grace period waits for this CPU
  uint8_t exp_hint = 0;     // an expedited one does
  uint8_t deferred_qs = 0;  // an unlock could not report where it was: the next chance does

  bool any() const { return __builtin_bit_cast(uint32_t, *this) != 0; }
};

// What a reader does, by the flavour and the preemption model that the machine was booted with
// (read_side.h).
enum class ReaderKind : uint8_t { kNothing, kCounts, kDisablesPreemption };

// A synchronize_rcu() of this thread's: one at a time.
struct SyncWaiter {
  Head head;  // first: by callback
  Thread* thread = nullptr;
  SyncWaiter* next = nullptr;
  platform::Atomic<uint32_t> done{0};
};

struct TaskState {
  // Touched by the thread itself only.
  uint32_t read_nesting = 0;
  Special special;
  // As every thread's of the machine; here it needs no way over the knobs.
  ReaderKind reader_kind = ReaderKind::kNothing;
  // Guarded by the leaf's lock.
  Node* blocked_node = nullptr;
  Thread* next_blocked = nullptr;
  Thread* previous_blocked = nullptr;
  SyncWaiter sync;
};

}  // namespace sipi::rcu
