// Function calls on other CPUs by IPI, and short critical sections.
#pragma once

#include "guest/kernel/kernel.h"

namespace sipi {

// Runs `function` on every online CPU but the caller and waits until all have done it; then runs it
// on the caller where that makes sense (cache set-up, printing). Boot CPU, interrupts on. Panics if
// a CPU does not answer in the bound.
void CallAll(PerCpu& self, CallFunction function);

// Sends one function call to each online CPU in turn and waits for each answer; counts the answers
// in the result page.
void CallEach(PerCpu& self);

// The function call interrupt's work.
void RunCalled(PerCpu& self);

// On a CPU that is out of the online mask and will take no interrupt any more: nobody shall wait
// for it.
void AnswerOnTheWayDown(PerCpu& self);

// Programs the running CPU's cache attributes, and is charged for it.
void SetUpCaches();

// Takes a spinlock for a handful of instructions. With fewer cores than CPUs the holder may not be
// running, so a CPU that waits spins for a moment and then lets others run. Bounded: a holder that
// never leaves is a panic.
inline void LockShort(Kernel& kernel, platform::Atomic<uint32_t>& lock) {
  constexpr uint32_t kSpinUs = 20;
  if (lock.Exchange(1, std::memory_order_acquire) == 0) return;
  // As many holders as there are CPUs may come before this one.
  const auto deadline = platform::DeadlineInUs(uint64_t{kernel.knobs().handshake_timeout_ms} *
                                               1000 * (kernel.params->cpu_count / 64 + 1));
  do {
    const auto free = [](uint32_t value) { return value == 0; };
    SIPI_ASSERT(platform::SpinPolitely(lock.Ref(), free, kSpinUs, deadline));
  } while (lock.Exchange(1, std::memory_order_acquire) != 0);
}
inline void UnlockShort(platform::Atomic<uint32_t>& lock) {
  lock.Store(0, std::memory_order_release);
}

}  // namespace sipi
