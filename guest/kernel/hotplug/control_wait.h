// How a control thread waits for another CPU's word: it looks for a millisecond, then sleeps
// between looks, as Linux does (cpuhp_wait_for_sync_state). Other threads run meanwhile, and RCU
// sees this CPU quiescent.
#pragma once

#include "guest/kernel/sched/time.h"
#include "guest/kernel/tsc_check.h"
#include "guest/kernel/wait.h"

namespace sipi {

inline platform::Deadline HandshakeEnd(Kernel& kernel) {
  return platform::DeadlineInUs(uint64_t{kernel.knobs().handshake_timeout_ms} * 1000);
}

// False: the bound of a handshake came first. Thread context, bound to `self`'s CPU.
template <class Pred>
bool AwaitWord(PerCpu& self, platform::AtomicRef<uint32_t> word, Pred pred) {
  constexpr uint32_t kSleepUs = 1000;
  constexpr uint32_t kLookUs = 50;
  Kernel& kernel = *self.kernel;
  const platform::Deadline end = HandshakeEnd(kernel);
  const bool checks = kernel.knobs().tsc_check != 0;
  uint32_t look_us = kernel.knobs().control_spin_us;
  for (;;) {
    // An AP may ask for its TSC check: then no look is a long one, and there is no sleep.
    const platform::Deadline look = platform::DeadlineInUs(checks ? kLookUs : look_us);
    if (platform::SpinPolitely(word, pred, kPoliteSliceUs, platform::Earlier(look, end)))
      return true;
    if (platform::Expired(end)) return false;
    if (!checks) {
      SleepUs(kSleepUs);
    } else if (kernel.tsc_check_request.Load(std::memory_order_seq_cst) != 0) {
      ServeTscCheck(self);
    }
    look_us = kLookUs;
  }
}

}  // namespace sipi
