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

// When a wait for another CPU that is up counts as one for ever, which is a panic and never a
// result. So it has nothing to do with how long an AP may take to come (handshake_timeout_ms), and
// is generous: where CPUs share the cores of a busy host, each of them may be away for as long as
// the host likes, and as many as there are may have their turn before the one that is waited for.
inline platform::Deadline WaitedForEver(Kernel& kernel) {
  constexpr uint64_t kBaseUs = 60'000'000;
  constexpr uint64_t kPerCpuUs = 1'000'000;
  return platform::DeadlineInUs(kBaseUs + kernel.params->cpu_count * kPerCpuUs);
}

// Takes a spinlock for a handful of instructions. With fewer cores than CPUs the holder may not be
// running, so a CPU that waits spins for a moment and then lets others run. Bounded: a holder that
// never leaves is a panic.
inline void LockShort(Kernel& kernel, platform::Atomic<uint32_t>& lock) {
  constexpr uint32_t kSpinUs = 20;
  if (lock.Exchange(1, std::memory_order_acquire) == 0) return;
  const platform::Deadline deadline = WaitedForEver(kernel);
  do {
    const auto free = [](uint32_t value) { return value == 0; };
    SIPI_ASSERT(platform::SpinPolitely(lock.Ref(), free, kSpinUs, deadline));
  } while (lock.Exchange(1, std::memory_order_acquire) != 0);
}
inline void UnlockShort(platform::Atomic<uint32_t>& lock) {
  lock.Store(0, std::memory_order_release);
}

}  // namespace sipi
