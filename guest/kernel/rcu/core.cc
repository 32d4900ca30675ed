// RCU's deferred work on a CPU (Linux's RCU_SOFTIRQ): what the tick finds to do is done here, with
// interrupts on.
#include "guest/kernel/rcu/internal.h"

namespace sipi::rcu {
namespace {

// How long callbacks may hold up what was interrupted, and how many goes they get; what is left
// then waits for the next interrupt, which the tick sees to.
constexpr uint64_t kMostNs = 2'000'000;
constexpr uint32_t kMostRounds = 10;

// Interrupts on, preemption disabled.
void RunReady(PerCpu& self) {
  const Data& data = DataOf(self);
  if (!data.callbacks.HasReady()) return;
  const uint64_t begin_ns = platform::NowNs();
  for (uint32_t round = 0; data.callbacks.HasReady(); ++round) {
    RunCallbacks(self);
    const bool idle = data.idle && self.need_resched == 0;
    if (!idle && (round + 1 >= kMostRounds || platform::NowNs() - begin_ns > kMostNs)) return;
  }
}

}  // namespace

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
  RunReady(self);
  data.in_core = false;
}

}  // namespace sipi::rcu
