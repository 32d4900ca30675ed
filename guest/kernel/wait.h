// Waiting for another CPU, and telling a waiting one. A wait spins for a moment, then halts until
// an IPI (or spins on, where the knob says so). Dekker's pattern makes sure that no wake-up is
// lost: the sleeper stores `sleeping` and then looks at the word, the waker stores the word and
// then looks at `sleeping`, both sequentially consistent.
#pragma once

#include "guest/kernel/apic.h"
#include "guest/kernel/kernel.h"

namespace sipi {

// Tells `cpu` that a word it may be waiting for has changed. The change must have been stored with
// seq_cst.
inline void NotifyCpu(PerCpu& self, CpuNumber cpu) {
  platform::AtomicRef<uint32_t> sleeping(self.kernel->slot(cpu).sleeping);
  if (sleeping.Load(std::memory_order_seq_cst) != 0) SendIpi(self, cpu, Vector(abi::kWakeVector));
}

// Halts until done() or, if `bounded`, the deadline. done() is evaluated with interrupts off.
template <class Done>
bool HaltUntil(PerCpu& self, Done done, platform::Deadline deadline, bool bounded) {
  platform::AtomicRef<uint32_t> sleeping(self.slot->sleeping);
  platform::IrqDisable();
  sleeping.Exchange(1, std::memory_order_seq_cst);
  bool ok = done();
  while (!ok && !(bounded && platform::Expired(deadline))) {
    if (bounded) ArmTimer(self, deadline);
    platform::HaltEnabled();
    self.slot->wakes++;
    ok = done();
  }
  sleeping.Store(0, std::memory_order_release);
  return ok;
}

// Waits until pred(value of word) or the deadline. A word that is waited for in the halting mode
// must be changed with seq_cst and followed by NotifyCpu. Interrupts are on afterwards if the wait
// halted and they were on before.
template <class Pred>
bool WaitFor(PerCpu& self, platform::AtomicRef<uint32_t> word, Pred pred,
             platform::Deadline deadline, abi::WaitMode mode) {
  if (mode == abi::WaitMode::kSpin) return platform::SpinUntil(word, pred, deadline);
  const abi::Knobs& knobs = self.kernel->knobs();
  const uint32_t spin_us = self.cpu == kBootCpu ? knobs.control_spin_us : knobs.wait_spin_us;
  const platform::Deadline spin = platform::DeadlineInUs(spin_us);
  if (platform::SpinUntil(word, pred, platform::Earlier(spin, deadline))) return true;
  const bool irqs = platform::IrqsEnabled();
  const bool ok = HaltUntil(
      self, [&] { return pred(word.Load(std::memory_order_seq_cst)); }, deadline, true);
  if (irqs) platform::IrqEnable();
  return ok;
}

}  // namespace sipi
