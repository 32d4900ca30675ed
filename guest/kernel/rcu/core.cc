// RCU's deferred work on a CPU (Linux's RCU_SOFTIRQ): what the tick finds to do is done here, with
// interrupts on.
#include "guest/kernel/rcu/internal.h"

namespace sipi::rcu {

bool CorePending(PerCpu& self) {
  if (self.rcu == nullptr) return false;
  Data& data = *self.rcu;
  State& state = *data.state;
  if (data.in_core || state.gp_thread == nullptr) return false;
  if (data.core_needs_qs && !data.cpu_no_qs_norm) return true;
  if (!data.callbacks.empty()) {
    if (CallbacksReady(data)) return true;
    if (data.callbacks.HasUnassigned() && !GpInProgress(state)) return true;
  }
  return data.leaf->gp_seq.Load(std::memory_order_acquire) != data.gp_seq;
}

void RunCore(PerCpu& self) {
  if (self.rcu == nullptr) return;
  Data& data = *self.rcu;
  State& state = *data.state;
  if (data.in_core || state.gp_thread == nullptr) return;
  data.in_core = true;
  SIPI_ASSERT(IsWatching(self));
  {
    IrqGuard irq;
    CheckQuiescentState(self);
    if (CallbacksReady(data) && !data.callbacks.HasReady()) {
      // An expedited grace period has passed.
      data.leaf->lock.Lock(*self.kernel);
      const bool wake = AdvanceCallbacks(*data.leaf, data);
      data.leaf->lock.Unlock();
      if (wake) WakeGpThread(state);
    }
    if (data.callbacks.HasUnassigned() && !GpInProgress(state)) AccelerateCallbacksUnlocked(data);
  }
  RunCallbacks(self);
  data.in_core = false;
}

}  // namespace sipi::rcu
