// Waiting for another CPU, and telling a waiting one. A wait spins for a moment, then halts until
// an IPI (or spins on, where the knob says so). Dekker's pattern makes sure that no wake-up is
// lost: the sleeper stores `sleeping` and then looks at the word, the waker stores the word and
// then looks at `sleeping`, both sequentially consistent.
#pragma once

#include "guest/kernel/apic.h"
#include "guest/kernel/kernel.h"
#include "guest/kernel/sched/thread.h"

namespace sipi {

// Tells `cpu` that a word it may be waiting for has changed. The change must have been stored with
// seq_cst.
inline void NotifyCpu(PerCpu& self, CpuNumber cpu) {
  platform::AtomicRef<uint32_t> sleeping(self.kernel->slot(cpu).sleeping);
  if (sleeping.Load(std::memory_order_seq_cst) != 0) SendIpi(self, cpu, Vector(abi::kWakeVector));
}

// Halts until an interrupt, unless done() holds or the deadline has passed already. done() is
// evaluated with interrupts off, and they are off afterwards.
template <class Done>
void HaltOnce(PerCpu& self, Done done, platform::Deadline deadline) {
  platform::AtomicRef<uint32_t> sleeping(self.slot->sleeping);
  platform::IrqDisable();
  sleeping.Exchange(1, std::memory_order_seq_cst);
  if (!done() && !platform::Expired(deadline)) {
    if (platform::Bounded(deadline)) ArmTimer(self, deadline);
    platform::HaltEnabled();
    self.slot->wakes++;
  }
  sleeping.Store(0, std::memory_order_release);
}

// A wait that spins lets others run after so long: the CPU that is waited for may want this very
// core.
inline constexpr uint32_t kPoliteSliceUs = 30;

// Waits until pred(value of word), true, or the deadline, false. A word that is waited for in the
// halting mode must be changed with seq_cst and followed by NotifyCpu. Whoever is woken spins for a
// while before it halts again: an AP is woken ahead of its turn. Interrupts are afterwards as they
// were.
template <class Pred>
bool WaitFor(PerCpu& self, platform::AtomicRef<uint32_t> word, Pred pred,
             platform::Deadline deadline, abi::WaitMode mode) {
  if (pred(word.Load(std::memory_order_acquire))) return true;
  if (mode == abi::WaitMode::kSpin) return platform::SpinUntil(word, pred, deadline);
  const abi::Knobs& knobs = self.kernel->knobs();
  uint32_t spin_us = self.cpu == kBootCpu ? knobs.control_spin_us : knobs.wait_spin_us;
  const bool irqs = platform::IrqsEnabled();
  do {
    const platform::Deadline spin = platform::DeadlineInUs(spin_us);
    if (platform::SpinPolitely(word, pred, kPoliteSliceUs, platform::Earlier(spin, deadline)))
      return true;
    HaltOnce(
        self, [&] { return pred(word.Load(std::memory_order_seq_cst)); }, deadline);
    if (irqs) platform::IrqEnable();
    // A thread that waits so holds its CPU; others have their turn where nothing takes it from it.
    if (self.need_resched != 0 && irqs) CondResched();
    spin_us = knobs.control_spin_us;
    if (pred(word.Load(std::memory_order_acquire))) return true;
  } while (!platform::Expired(deadline));
  return false;
}

}  // namespace sipi
