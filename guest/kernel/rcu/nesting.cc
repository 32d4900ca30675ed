// When synchronize_rcu() is an expedited grace period: who asks for it, nested; and who forbids it.
#include "guest/kernel/rcu/internal.h"

namespace sipi::rcu {
namespace {

constexpr uint32_t kUnbalanced = ~0u;

void TraceNesting(uint32_t nesting) {
  platform::Trace(abi::TraceEvent::kExpediteNesting, 0, nesting);
}

}  // namespace

void InitExp(State& state) {
  const abi::KernelKnobs& knobs = state.kernel->kernel_knobs();
  state.expedited_nesting.Store(knobs.boot_expedited != 0 ? 1 : 0, std::memory_order_relaxed);
  state.boot_expedites.Store(knobs.boot_expedited != 0 ? 1 : 0, std::memory_order_relaxed);
  state.expedited_knob.Store(knobs.rcu_expedited, std::memory_order_relaxed);
  state.normal_knob.Store(knobs.rcu_normal, std::memory_order_relaxed);
  for (Node& node : state.nodes) {
    // Behind whatever is asked for first.
    node.exp_seq_rq.Store(kInitialExpSeq, std::memory_order_relaxed);
    node.exp_poll_seq.Store(kCompletedCookie, std::memory_order_relaxed);
  }
}

void ExpediteGp(Kernel& kernel) {
  TraceNesting(StateOf(kernel).expedited_nesting.FetchAdd(1, std::memory_order_seq_cst) + 1);
}

void UnexpediteGp(Kernel& kernel) {
  const auto nesting = StateOf(kernel).expedited_nesting.Ref();
  uint32_t before = nesting.Load(std::memory_order_relaxed);
  do {
    if (before == 0) return TraceNesting(kUnbalanced);
  } while (!nesting.CompareExchange(before, before - 1, std::memory_order_seq_cst));
  TraceNesting(before - 1);
}

bool GpIsExpedited(Kernel& kernel) {
  State& state = StateOf(kernel);
  return state.expedited_knob.Load(std::memory_order_relaxed) != 0 ||
         state.expedited_nesting.Load(std::memory_order_relaxed) != 0;
}

bool GpIsNormal(Kernel& kernel) {
  State& state = StateOf(kernel);
  return state.normal_knob.Load(std::memory_order_relaxed) != 0 &&
         state.scheduler_state.Load(std::memory_order_relaxed) !=
             static_cast<uint32_t>(SchedulerState::kInit);
}

void EndInkernelBoot(Kernel& kernel) {
  if (StateOf(kernel).boot_expedites.Exchange(0, std::memory_order_seq_cst) == 0) return;
  UnexpediteGp(kernel);
}

}  // namespace sipi::rcu
