// call_rcu(): queueing callbacks, giving them their grace period, and running them in batches.
#include "guest/kernel/rcu/internal.h"

namespace sipi::rcu {
namespace {

constexpr uint32_t kTimeCheckEvery = 32;        // callbacks
constexpr uint64_t kBatchNs = 3 * 1000 * 1000;  // rcu_resched_ns

GpPair SnapBoth(State& state) {
  return {SeqSnap(state.gp_seq.Load(std::memory_order_seq_cst)),
          SeqSnap(state.expedited_sequence.Load(std::memory_order_seq_cst))};
}

// A CPU that has queued a lot since it was last looked at helps. Interrupts off.
void CheckOverload(Data& data, const Head& newest) {
  State& state = *data.state;
  const uint64_t length = data.callbacks.length();
  if (length <= data.length_last_check + kHighMark) return;
  NoteGpChanges(platform::ThisCpu());
  if (!GpInProgress(state)) {
    AccelerateCallbacksUnlocked(data);
  } else {
    // The callbacks wait for a grace period that nobody has tried to hurry since the last look.
    data.batch_limit = kBatchLimitMax;
    const uint64_t scans = state.fqs_count.Load(std::memory_order_relaxed);
    const bool others_wait = data.callbacks.FirstPending() != &newest;
    if (scans == data.fqs_count_snap && others_wait) ForceQuiescentState(state);
    data.fqs_count_snap = state.fqs_count.Load(std::memory_order_relaxed);
  }
  data.length_last_check = data.callbacks.length();
}

// Tells the grace-period kthread whether it should hurry on this CPU's behalf. Interrupts off.
void NoteOverload(Data& data) {
  Node& leaf = *data.leaf;
  const bool over = data.callbacks.length() >= kOverload;
  const uint64_t mask = leaf.overload_mask.Load(std::memory_order_relaxed);
  if (over == ((mask & data.grpmask) != 0)) return;
  leaf.lock.Lock(*data.state->kernel);
  const uint64_t now = leaf.overload_mask.Load(std::memory_order_relaxed);
  leaf.overload_mask.Store(over ? now | data.grpmask : now & ~data.grpmask,
                           std::memory_order_relaxed);
  leaf.lock.Unlock();
}

}  // namespace

void PublishCallbackCount(Data& data) {
  data.callback_count.Store(static_cast<uint32_t>(data.callbacks.length()),
                            std::memory_order_seq_cst);
}

bool AccelerateCallbacks(Node& node, Data& data) {
  if (!data.callbacks.HasPending()) return false;
  const GpPair until = SnapBoth(*data.state);
  return data.callbacks.Accelerate(until) && StartFutureGp(node, data, until.normal);
}

bool AdvanceCallbacks(Node& node, Data& data) {
  if (!data.callbacks.HasPending()) return false;
  data.callbacks.Advance({node.gp_seq.Load(std::memory_order_acquire),
                          data.state->expedited_sequence.Load(std::memory_order_acquire)});
  return AccelerateCallbacks(node, data);
}

void AccelerateCallbacksUnlocked(Data& data) {
  if (!data.callbacks.HasPending()) return;
  const GpPair until = SnapBoth(*data.state);
  if (SeqGe(data.gp_seq_needed, until.normal)) {
    (void)data.callbacks.Accelerate(until);  // it has been asked for
    return;
  }
  data.leaf->lock.Lock(*data.state->kernel);
  const bool wake = AccelerateCallbacks(*data.leaf, data);
  data.leaf->lock.Unlock();
  if (wake) WakeGpThread(*data.state);
}

void Call(Kernel& kernel, Head& head, void (*function)(Head&)) {
  head.function = function;
  IrqGuard irq;
  if (kernel.rcu == nullptr) {  // one CPU, one context: Init takes them over
    head.next = kernel.rcu_early;
    kernel.rcu_early = &head;
    return;
  }
  Data& data = DataOf(platform::ThisCpu());
  data.callbacks.Enqueue(head);
  PublishCallbackCount(data);
  if (data.callbacks.length() > kHighMark) {
    CheckOverload(data, head);
    NoteOverload(data);
  }
}

void CallHurry(Kernel& kernel, Head& head, void (*function)(Head&)) {
  Call(kernel, head, function);  // nothing is ever put off here
}

bool CallbacksReady(Data& data) {
  if (data.callbacks.HasReady()) return true;
  if (!data.callbacks.HasPending() || data.callbacks.SegmentEmpty(SegCbList::kWait)) return false;
  const uint64_t expedited = data.callbacks.SegmentGp(SegCbList::kWait).expedited;
  return SeqDone(data.state->expedited_sequence.Load(std::memory_order_acquire), expedited);
}

void RunCallbacks(PerCpu& self) {
  Data& data = DataOf(self);
  CallbackList ready;
  uint64_t limit = 0;
  {
    IrqGuard irq;
    if (!data.callbacks.HasReady()) return;
    const uint64_t share = data.callbacks.length() >> kBatchDivisor;
    limit = data.batch_limit > share ? data.batch_limit : share;
    data.callbacks.ExtractDone(ready);
  }
  const uint64_t begin_ns = platform::NowNs();
  uint64_t count = 0;
  while (Head* callback = ready.Pop()) {
    callback->function(*callback);
    ++count;
    if (count >= limit) break;
    if (count % kTimeCheckEvery == 0 && platform::NowNs() - begin_ns > kBatchNs) break;
  }
  platform::Trace(abi::TraceEvent::kCallbacks, static_cast<uint16_t>(self.cpu.value),
                  static_cast<uint32_t>(count));
  IrqGuard irq;
  data.callbacks.InsertDone(ready);
  data.callbacks.Uncount(count);
  PublishCallbackCount(data);
  const uint64_t length = data.callbacks.length();
  if (data.batch_limit >= kBatchLimitMax && length <= kLowMark) data.batch_limit = kBatchLimit;
  if (length == 0 && data.length_last_check != 0) {
    data.length_last_check = 0;
    data.fqs_count_snap = data.state->fqs_count.Load(std::memory_order_relaxed);
  } else if (length + kHighMark < data.length_last_check) {
    data.length_last_check = length;
  }
  NoteOverload(data);
}

}  // namespace sipi::rcu
