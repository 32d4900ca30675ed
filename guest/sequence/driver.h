// Runs a strategy over an order of CPUs. The one place that sequences: the guest's control CPU
// calls it with the cpuhp executor behind `Ops`, the VMM's host-driven bring-up with its own.
// Freestanding, no state, no allocation.
#pragma once

#include <cstdint>

#include "apic/regs/types.h"
#include "guest/sequence/strategy.h"

namespace sipi::sequence {

// Times of one INIT/SIPI/SIPI sequence. Source of the defaults: Linux arch/x86/kernel/smpboot.c
// (modern parts: no INIT delay, 10 us after each SIPI and again once the ICR is idle; old parts: 10
// ms, 300 us and 200 us).
struct KickTiming {
  uint32_t init_delay_us = 0;
  uint32_t sipi_delay_us = 10;       // after each SIPI, for the target to take it
  uint32_t sipi_idle_delay_us = 10;  // once more, after the ICR is idle
  uint8_t sipi_count = 2;
  uint8_t init_deassert =
      0;  // also send Linux's INIT level de-assert, which parts since the Pentium 4 ignore
  uint16_t pad = 0;
};

// The SIPIs of a sequence. A CPU that waits for one starts, one that runs takes no notice (SDM vol
// 3A, 9.4.3). Ops and `target` as below.
template <class Ops, class Target>
void StartupSequence(Ops& ops, const KickTiming& timing, Target target) {
  for (uint32_t i = 0; i < timing.sipi_count; ++i) {
    ops.SendStartup(target, i);
    ops.DelayUs(timing.sipi_delay_us);
    ops.DelayUs(timing.sipi_idle_delay_us);
  }
}

// Sends INIT, the wait, and the SIPIs to `target`, which is whatever Ops understands (a CPU, or all
// but self). Ops: void SendInit(T), SendInitDeassert(T), SendStartup(T, index), InitDelay(us),
// DelayUs(us).
template <class Ops, class Target>
void KickSequence(Ops& ops, const KickTiming& timing, Target target) {
  ops.SendInit(target);
  ops.InitDelay(timing.init_delay_us);
  if (timing.init_deassert != 0) ops.SendInitDeassert(target);
  StartupSequence(ops, timing, target);
}

// In a wake-up tree over `count` ranks (rank 0 is the control CPU), calls fn(child) for each rank
// that `rank` wakes, the one with the largest subtree first. In round k the ranks below 2^k wake
// rank + 2^k, so every rank is woken once and the depth is ceil(log2(count)).
template <class Fn>
constexpr void ForEachTreeChild(uint32_t rank, uint32_t count, Fn fn) {
  for (uint64_t step = 1; rank + step < count; step *= 2) {
    if (step > rank) fn(static_cast<uint32_t>(rank + step));
  }
}

// Ops of a strategy run, beyond the above. Each is called on the control CPU, or on the VMM's
// sequencer thread.
//
//   bool InScope(CpuNumber, Scope)   may this CPU be brought up in that scope
//   void PrepareKick(CpuNumber)      PREPARE section, handshake to kicked; the INIT comes otherwise
//   void Upcoming(CpuNumber)         told before BringTo(CPU): the CPU after it, so that its AP may
//                                    get ready meanwhile
//   void BringTo(CpuNumber, Goal)    everything up to the goal, one CPU; Ops records a failure
//   void KickBroadcast()             one KickSequence to all but self
//   void KickTreeRoots(count)        KickSequence to the children of rank 0
//   void WaitAllOnline(Scope)        concurrent pace: until all kicked CPUs are online, or the
//                                    bound
//   void PassBegin(index), PassEnd(index)
template <class Ops>
void RunPass(Ops& ops, const Pass& pass, const uint32_t* order, uint32_t order_count) {
  if (pass.pace == Pace::kConcurrent) {
    ops.WaitAllOnline(pass.scope);
    return;
  }
  const bool each = pass.means == Means::kEach;
  for (uint32_t i = 0; i < order_count; ++i) {
    const CpuNumber cpu(order[i]);
    if (!ops.InScope(cpu, pass.scope)) continue;
    if (each) {
      if (i + 1 < order_count) ops.Upcoming(CpuNumber(order[i + 1]));
      ops.BringTo(cpu, pass.goal);
    } else {
      ops.PrepareKick(cpu);
    }
  }
  if (pass.means == Means::kBroadcast) ops.KickBroadcast();
  if (pass.means == Means::kTree) ops.KickTreeRoots(order_count + 1);
}

template <class Ops>
void RunStrategy(Ops& ops, const Strategy& strategy, const uint32_t* order, uint32_t order_count) {
  for (uint32_t i = 0; i < strategy.pass_count; ++i) {
    ops.PassBegin(i);
    RunPass(ops, strategy.passes[i], order, order_count);
    ops.PassEnd(i);
  }
}

}  // namespace sipi::sequence
