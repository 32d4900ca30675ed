// The seam on metal (see guest/platform/platform.h for what each name promises). Ring 0, 64-bit,
// identity mapped.
#pragma once

#include <atomic>
#include <cstdint>

#include "apic/regs/icr.h"
#include "apic/regs/registers.h"
#include "guest/abi/boot_params.h"
#include "guest/abi/layout.h"
#include "guest/abi/trace.h"
#include "guest/kernel/percpu.h"
#include "guest/platform/builtin_atomics.h"
#include "guest/platform/x86/trace_claim.h"

namespace sipi::platform {

// --- Time.

struct Deadline {
  uint64_t ticks;
};

// Written once by the boot CPU before any AP runs.
struct Clock {
  uint64_t ticks_per_ms = 0;
};
extern Clock g_clock;

inline uint64_t NowTicks() {
  uint32_t low, high;
  asm volatile("rdtsc" : "=a"(low), "=d"(high));
  return uint64_t{high} << 32 | low;
}
inline void SetTicksPerMs(uint32_t khz) { g_clock.ticks_per_ms = khz; }
inline uint64_t TicksOfUs(uint64_t us) { return us * g_clock.ticks_per_ms / 1000; }
inline uint64_t NowNs() {
  const uint64_t ticks = NowTicks();
  return ticks / g_clock.ticks_per_ms * 1000000 +
         ticks % g_clock.ticks_per_ms * 1000000 / g_clock.ticks_per_ms;
}
inline Deadline DeadlineInUs(uint64_t us) { return {NowTicks() + TicksOfUs(us)}; }
inline constexpr Deadline NoDeadline() { return {~uint64_t{0}}; }
inline bool Bounded(Deadline d) { return d.ticks != NoDeadline().ticks; }
inline bool Expired(Deadline d) { return NowTicks() >= d.ticks; }
inline Deadline Earlier(Deadline a, Deadline b) { return a.ticks < b.ticks ? a : b; }

inline void Pause() { asm volatile("pause" ::: "memory"); }

template <class T, class Pred>
bool SpinUntil(AtomicRef<T> ref, Pred pred, Deadline deadline) {
  while (!pred(ref.Load(std::memory_order_acquire))) {
    if (Expired(deadline)) return pred(ref.Load(std::memory_order_acquire));
    Pause();
  }
  return true;
}

// An exit at which the VMM lets other threads run. On a machine with a core for each CPU nobody
// comes here often.
inline void Relax() { asm volatile("outb %%al, %0" ::"Nd"(abi::kYieldPort)); }

template <class T, class Pred>
bool SpinPolitely(AtomicRef<T> ref, Pred pred, uint32_t slice_us, Deadline deadline) {
  for (;;) {
    if (SpinUntil(ref, pred, Earlier(DeadlineInUs(slice_us), deadline))) return true;
    if (Expired(deadline)) return false;
    Relax();
  }
}

inline void SpinTicks(uint64_t end_ticks) {
  while (NowTicks() < end_ticks) Pause();
}
inline void DelayUs(uint32_t us) { SpinTicks(NowTicks() + TicksOfUs(us)); }
// Waits until `us` have passed since begin_ticks.
inline void DelayUntilUs(uint64_t begin_ticks, uint32_t us) {
  SpinTicks(begin_ticks + TicksOfUs(us));
}

// --- Ports, MSRs, interrupts.

inline void Out8(uint16_t port, uint8_t value) {
  asm volatile("outb %0, %1" ::"a"(value), "Nd"(port));
}
inline void Out32(uint16_t port, uint32_t value) {
  asm volatile("outl %0, %1" ::"a"(value), "Nd"(port));
}
inline uint32_t In32(uint16_t port) {
  uint32_t value;
  asm volatile("inl %1, %0" : "=a"(value) : "Nd"(port));
  return value;
}
inline uint64_t ReadMsr(uint32_t msr) {
  uint32_t low, high;
  asm volatile("rdmsr" : "=a"(low), "=d"(high) : "c"(msr) : "memory");
  return uint64_t{high} << 32 | low;
}
inline void WriteMsr(uint32_t msr, uint64_t value) {
  asm volatile("wrmsr" ::"a"(static_cast<uint32_t>(value)), "d"(static_cast<uint32_t>(value >> 32)),
               "c"(msr)
               : "memory");
}
inline void IrqDisable() { asm volatile("cli" ::: "memory"); }
inline void IrqEnable() { asm volatile("sti" ::: "memory"); }
inline bool IrqsEnabled() {
  uint64_t flags;
  asm volatile("pushfq; popq %0" : "=r"(flags)::"memory");
  return (flags & 0x200) != 0;
}
// STI's shadow covers the HLT (SDM vol 2B, STI), so nothing is lost in between.
inline void HaltEnabled() { asm volatile("sti; hlt; cli" ::: "memory"); }
[[noreturn]] inline void HaltForever() {
  for (;;) asm volatile("cli; hlt" ::: "memory");
}

// --- The running CPU's own area, at GS:24 (PerCpuHeader::self).

inline PerCpu& ThisCpu() {
  PerCpu* self;
  asm volatile("movq %%gs:24, %0" : "=r"(self));
  return *self;
}

// --- Threads. Their stacks come from the heap; an interrupt is taken on the stack that it finds.

struct Context {
  uint64_t stack_pointer = 0;
};
inline constexpr uint64_t kThreadStackBytes = 16384;

inline Thread* CurrentThread() {
  Thread* thread;
  asm volatile("movq %%gs:32, %0" : "=r"(thread));
  return thread;
}
inline void SetCurrentThread(Thread* thread) {
  asm volatile("movq %0, %%gs:32" ::"r"(thread) : "memory");
}
void* AllocateStack(Kernel& kernel);
void InitContext(Context& context, void* stack, void (*entry)(void*), void* argument);
extern "C" void sipi_switch_context(uint64_t* from, uint64_t to);
inline void SwitchContext(Context& from, Context& to) {
  sipi_switch_context(&from.stack_pointer, to.stack_pointer);
}

// The record is written as the four words that it is, low halves and high halves apart: RDTSC gives
// its result so, and putting it together first would cost instructions in a place where each one
// counts (an emulated ring 0). Inlined everywhere for the same reason. The event comes last: a
// record that has one is whole (guest/abi/trace.h).
[[gnu::always_inline]] inline void TraceWords(uint32_t tsc_low, uint32_t tsc_high,
                                              uint32_t event_and_target, uint32_t value) {
  const TraceClaim claim = ClaimTraceRecord();
  if (claim.full) return;
  auto* record = reinterpret_cast<volatile uint32_t*>(claim.at);
  record[0] = tsc_low;
  record[1] = tsc_high;
  record[3] = value;
  record[2] = event_and_target;
}
[[gnu::always_inline]] inline void TracePacked(uint32_t event_and_target, uint32_t value) {
  uint32_t low, high;
  asm volatile("rdtsc" : "=a"(low), "=d"(high));
  TraceWords(low, high, event_and_target, value);
}
[[gnu::always_inline]] inline void TraceAt(uint64_t ticks, abi::TraceEvent event, uint16_t target,
                                           uint32_t value) {
  TraceWords(static_cast<uint32_t>(ticks), static_cast<uint32_t>(ticks >> 32),
             abi::PackTrace(event, target), value);
}
[[gnu::always_inline]] inline void Trace(abi::TraceEvent event, uint16_t target, uint32_t value) {
  TracePacked(abi::PackTrace(event, target), value);
}

// --- Local APIC, in the mode that the machine was booted for (every CPU is in the same by the time
// C++ runs).

extern bool g_x2apic __asm__("sipi_x2apic");  // entry.S looks at it too

inline uint32_t ApicRead(apic::Reg reg) {
  if (g_x2apic) return static_cast<uint32_t>(ReadMsr(apic::X2ApicMsr(reg)));
  return *reinterpret_cast<volatile uint32_t*>(apic::kApicBaseGpa + static_cast<uint64_t>(reg));
}
inline void ApicWrite(apic::Reg reg, uint32_t value) {
  if (g_x2apic) return WriteMsr(apic::X2ApicMsr(reg), value);
  *reinterpret_cast<volatile uint32_t*>(apic::kApicBaseGpa + static_cast<uint64_t>(reg)) = value;
}
void ApicWriteIcrXApic(uint32_t low, uint32_t dest);
inline void ApicWriteIcr(uint32_t low, uint32_t dest) {
  if (g_x2apic) return WriteMsr(apic::X2ApicMsr(apic::Reg::kIcrLow), uint64_t{dest} << 32 | low);
  ApicWriteIcrXApic(low, dest);
}
inline void WriteTscDeadline(uint64_t ticks) { WriteMsr(apic::kMsrTscDeadline, ticks); }

// --- The machine.

extern uint16_t g_pm_timer_port;
inline uint32_t ReadPmTimer() { return In32(g_pm_timer_port); }
// Waits until the reference clock has moved on by `ticks` since `begin`. For the time before the
// TSC is calibrated.
void WaitPmTicks(uint32_t begin, uint32_t ticks);
// Local APIC timer frequency measured against a TSC of known frequency.
uint32_t MeasureBusKhz(uint32_t tsc_khz);

bool InvariantTsc();
bool HasTscDeadline();
bool HasTopologyLeaf();
bool EncryptedGuest();

void CacheSetup();
void PrepareStartup(Kernel& kernel);

extern bool g_charge;
inline void Charge(abi::Charge kind) {
  if (g_charge) Out8(abi::kChargePort, static_cast<uint8_t>(kind));
}
inline void Doorbell(abi::Doorbell value) {
  Out32(abi::kDoorbellPort, static_cast<uint32_t>(value));
}

inline void SerialWrite(const char* text, uint64_t bytes) {
  asm volatile("cld; rep outsb" : "+S"(text), "+c"(bytes) : "d"(abi::kSerialPort) : "memory");
}

[[noreturn]] void Exit(uint32_t code);
[[noreturn]] void Panic(const char* file, uint32_t line, const char* text);
void Break(const abi::FaultSpec& fault);

}  // namespace sipi::platform
