// Interrupts between threads of the host: a word of pending bits for each CPU, and a futex for
// those that halt.
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "guest/kernel/apic.h"
#include "guest/platform/threads/cpu.h"

namespace sipi::threads {
namespace {

constexpr uint64_t kNsPerSecond = 1'000'000'000;

uint32_t BitOf(Vector vector) {
  SIPI_ASSERT(vector.value >= kFirstVector);
  return 1u << (vector.value - kFirstVector);
}

bool TimerDue(const Cpu& cpu) { return platform::NowTicks() >= cpu.timer_ticks; }

bool Due(const Cpu& cpu) {
  return cpu.pending.load(std::memory_order_acquire) != 0 || TimerDue(cpu);
}

void LeaveIfOver(Cpu& cpu) {
  const bool init = (cpu.startup.load(std::memory_order_relaxed) & kInitSeen) != 0;
  if (init || cpu.machine->ended()) LeaveForGood(cpu);
}

// The highest vector that is pending, taken; false: none.
bool Take(Cpu& cpu, Vector* vector) {
  if (TimerDue(cpu)) {
    cpu.timer_ticks = ~uint64_t{0};
    *vector = Vector(abi::kTimerVector);
    return true;
  }
  const uint32_t bits = cpu.pending.load(std::memory_order_acquire);
  if (bits == 0) return false;
  const auto highest = static_cast<uint8_t>(31 - __builtin_clz(bits));
  cpu.pending.fetch_and(~(1u << highest), std::memory_order_acq_rel);
  *vector = Vector(static_cast<uint8_t>(kFirstVector + highest));
  return true;
}

void Handle(PerCpu& self, Vector vector) {
  if (vector.value == abi::kSpuriousVector) return;
  if (vector.value == abi::kWakeVector) return;  // the way back is all its work
  HandleInterrupt(self, vector);
}

void TakeInterrupts() {
  Vector vector;
  while (Here().irqs && Take(Here(), &vector)) {
    Here().irqs = false;
    PerCpu& self = platform::ThisCpu();
    Handle(self, vector);
    if (self.need_resched != 0) PreemptAfterInterrupt();  // maybe on another CPU from here on
    Here().irqs = true;
  }
}

}  // namespace

void Poll() {
  Cpu& cpu = Here();
  LeaveIfOver(cpu);
  if (cpu.irqs && Due(cpu)) TakeInterrupts();
}

void SpinOnce(uint32_t turn) {
  constexpr uint32_t kTurnsPerPoll = 16;
  constexpr uint32_t kTurnsPerYield = 256;
  asm volatile("pause" ::: "memory");
  if (turn % kTurnsPerPoll == kTurnsPerPoll - 1) Poll();
  if (turn % kTurnsPerYield == kTurnsPerYield - 1) sched_yield();
}

void WaitForAnything(Cpu& cpu) {
  cpu.halted.store(1, std::memory_order_seq_cst);
  const bool nothing = cpu.pending.load(std::memory_order_seq_cst) == 0 &&
                       cpu.startup.load(std::memory_order_seq_cst) != (kInitSeen | kStartupSeen) &&
                       !cpu.machine->ended();
  if (nothing) {
    timespec timeout = {};
    const bool timer = cpu.timer_ticks != ~uint64_t{0};
    if (timer) {
      const uint64_t now = platform::NowTicks();
      const uint64_t ticks = cpu.timer_ticks > now ? cpu.timer_ticks - now : 0;
      const uint64_t ns = ticks / platform::TicksPerMs() * 1'000'000 +
                          ticks % platform::TicksPerMs() * 1'000'000 / platform::TicksPerMs();
      timeout.tv_sec = static_cast<time_t>(ns / kNsPerSecond);
      timeout.tv_nsec = static_cast<long>(ns % kNsPerSecond);
    }
    // A kick in between has changed `halted`: the call returns at once.
    syscall(SYS_futex, &cpu.halted, FUTEX_WAIT_PRIVATE, 1, timer ? &timeout : nullptr, nullptr, 0);
  }
  cpu.halted.store(0, std::memory_order_seq_cst);
}

void Kick(Cpu& cpu) {
  if (cpu.halted.exchange(0, std::memory_order_seq_cst) == 0) return;
  syscall(SYS_futex, &cpu.halted, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void SendInterrupt(Cpu& cpu, Vector vector) {
  cpu.pending.fetch_or(BitOf(vector), std::memory_order_seq_cst);
  Kick(cpu);
}

}  // namespace sipi::threads

namespace sipi::platform {

using threads::Cpu;
using threads::Here;

void IrqDisable() { Here().irqs = false; }

void IrqEnable() {
  Here().irqs = true;
  threads::Poll();
}

bool IrqsEnabled() { return Here().irqs; }

void HaltEnabled() {
  while (!threads::Due(Here())) {
    threads::LeaveIfOver(Here());
    threads::WaitForAnything(Here());
  }
  IrqEnable();
  IrqDisable();
}

void HaltForever() {
  IrqDisable();
  for (;;) {
    Cpu& cpu = Here();
    threads::LeaveIfOver(cpu);
    threads::WaitForAnything(cpu);
    // Interrupts stay pending, and must not keep the host's thread awake.
    cpu.pending.store(0, std::memory_order_relaxed);
    cpu.timer_ticks = ~uint64_t{0};
  }
}

void Relax() {
  sched_yield();
  threads::Poll();
}

void DelayUs(uint32_t us) { DelayUntilUs(NowTicks(), us); }

void DelayUntilUs(uint64_t begin_ticks, uint32_t us) {
  const uint64_t end = begin_ticks + TicksOfUs(us);
  for (uint32_t turn = 0; NowTicks() < end; ++turn) threads::SpinOnce(turn);
  threads::Poll();
}

// --- Local APIC.

uint32_t ApicRead(apic::Reg reg) { return reg == apic::Reg::kId ? Here().number : 0; }
void ApicWrite(apic::Reg, uint32_t) {}

void WriteTscDeadline(uint64_t ticks) { Here().timer_ticks = ticks != 0 ? ticks : ~uint64_t{0}; }

namespace {

void Deliver(Cpu& cpu, const apic::Icr& icr) {
  switch (icr.mode) {
    case apic::DeliveryMode::kFixed:
      return threads::SendInterrupt(cpu, icr.vector);
    case apic::DeliveryMode::kInit:
      if (!icr.assert_level) return;
      cpu.startup.store(threads::kInitSeen, std::memory_order_seq_cst);
      return threads::Kick(cpu);
    case apic::DeliveryMode::kStartUp: {
      // Only a CPU in wait-for-SIPI takes it.
      uint32_t init = threads::kInitSeen;
      cpu.startup.compare_exchange_strong(init, threads::kInitSeen | threads::kStartupSeen);
      return threads::Kick(cpu);
    }
    default:
      return;
  }
}

}  // namespace

void ApicWriteIcr(uint32_t low, uint32_t dest) {
  const apic::Icr icr = apic::Icr::FromLow(low, dest);
  Cpu& here = Here();
  threads::Machine& machine = *here.machine;
  if (icr.shorthand == apic::Shorthand::kSelf) return Deliver(here, icr);
  if (icr.shorthand == apic::Shorthand::kNone) {
    if (dest < machine.size()) Deliver(machine.cpu(dest), icr);
    return;
  }
  for (uint32_t i = 0; i < machine.size(); ++i) {
    const bool self = i == here.number;
    if (!self || icr.shorthand == apic::Shorthand::kAllIncludingSelf) Deliver(machine.cpu(i), icr);
  }
}

}  // namespace sipi::platform
