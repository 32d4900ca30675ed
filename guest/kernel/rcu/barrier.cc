// rcu_barrier(): a callback of its own behind those of every CPU that has any, and a count of them.
#include <cstddef>

#include "guest/kernel/rcu/internal.h"
#include "guest/kernel/sched/smp_call.h"

namespace sipi::rcu {
namespace {

void Count(State& state, uint32_t done) {
  if (state.barrier_cpu_count.FetchAdd(0u - done, std::memory_order_acq_rel) == done)
    state.barrier_completion.Complete(*state.kernel);
}

void BarrierCallback(Head& head) {
  auto& data =
      *reinterpret_cast<Data*>(reinterpret_cast<std::byte*>(&head) - offsetof(Data, barrier_head));
  Count(*data.state, 1);
}

// On the CPU whose data it is, in interrupt context.
void EntrainHere(void* argument) {
  Data& data = *static_cast<Data*>(argument);
  IrqSpinGuard guard(*data.state->kernel, data.state->barrier_lock);
  EntrainBarrier(data);
}

// The leaf's CPUs without callbacks, and those that are gone, at once; returns those that must do
// it themselves. A leaf's worth under one lock: with many CPUs the lock is what costs.
uint64_t EntrainLeaf(State& state, Node& leaf) {
  IrqSpinGuard guard(*state.kernel, state.barrier_lock);
  const uint64_t barrier = state.barrier_seq.Load(std::memory_order_relaxed);
  uint64_t left = 0;
  for (uint32_t i = leaf.grplo; i <= leaf.grphi; ++i) {
    Data& data = DataOf(*state.kernel, CpuNumber(i));
    if (data.barrier_seq_snap == barrier) continue;  // moved meanwhile, and seen to
    if (data.callback_count.Load(std::memory_order_seq_cst) == 0) {
      data.barrier_seq_snap = barrier;
    } else if (data.up.Load(std::memory_order_acquire) == 0) {
      EntrainBarrier(data);
    } else {
      left |= data.grpmask;
    }
  }
  return left;
}

// False: the CPU is on its way up or down; look at it again.
bool AskCpu(State& state, Data& data) {
  return CallFunctionSingle(*state.kernel, data.cpu, EntrainHere, &data, true);
}

void DoLeaf(State& state, Node& leaf) {
  while (const uint64_t left = EntrainLeaf(state, leaf)) {
    bool all = true;
    ForEachCpu(leaf, left, [&](CpuNumber cpu) {
      if (!AskCpu(state, DataOf(*state.kernel, cpu))) all = false;
    });
    if (all) return;
    SleepJiffies(1);
  }
}

}  // namespace

void EntrainBarrier(Data& data) {
  State& state = *data.state;
  const uint64_t barrier = state.barrier_seq.Load(std::memory_order_relaxed);
  if (SeqState(barrier) == 0 || data.barrier_seq_snap == barrier) return;
  data.barrier_head.function = BarrierCallback;
  if (data.callbacks.Entrain(data.barrier_head)) {
    state.barrier_cpu_count.FetchAdd(1, std::memory_order_acq_rel);
    PublishCallbackCount(data);
  }
  data.barrier_seq_snap = barrier;
}

void Barrier(Kernel& kernel) {
  if (kernel.rcu == nullptr) return;  // they cannot run yet, and nobody can wait
  State& state = *kernel.rcu;
  platform::Trace(abi::TraceEvent::kBarrierBegin, 0, 0);
  const uint64_t snap = SeqSnap(state.barrier_seq.Load(std::memory_order_seq_cst));
  state.barrier_mutex.Lock();
  if (!SeqDone(state.barrier_seq.Load(std::memory_order_seq_cst), snap)) {
    {
      IrqSpinGuard guard(kernel, state.barrier_lock);
      state.barrier_seq.Store(SeqStarted(state.barrier_seq.Load(std::memory_order_relaxed)),
                              std::memory_order_seq_cst);
      state.barrier_completion.Reset();
      // Two on top, so that it cannot become 0 before all CPUs have been looked at.
      state.barrier_cpu_count.Store(2, std::memory_order_seq_cst);
    }
    for (Node& leaf : state.leaves()) DoLeaf(state, leaf);
    Count(state, 2);
    state.barrier_completion.Wait();
    IrqSpinGuard guard(kernel, state.barrier_lock);
    state.barrier_seq.Store(SeqEnded(state.barrier_seq.Load(std::memory_order_relaxed)),
                            std::memory_order_seq_cst);
  }
  state.barrier_mutex.Unlock();
  platform::Trace(abi::TraceEvent::kBarrierEnd, 0, 0);
}

}  // namespace sipi::rcu
