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

// Programs the running CPU's cache attributes, and is charged for it.
void SetUpCaches();

// A spinlock for a handful of instructions. Bounded: a holder that never leaves is a panic.
inline void LockShort(Kernel& kernel, platform::Atomic<uint32_t>& lock) {
  while (lock.Exchange(1, std::memory_order_acquire) != 0) {
    const auto deadline =
        platform::DeadlineInUs(uint64_t{kernel.knobs().handshake_timeout_ms} * 1000);
    SIPI_ASSERT(platform::SpinUntil(
        lock.Ref(), [](uint32_t value) { return value == 0; }, deadline));
  }
}
inline void UnlockShort(platform::Atomic<uint32_t>& lock) {
  lock.Store(0, std::memory_order_release);
}

}  // namespace sipi
