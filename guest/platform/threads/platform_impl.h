// The seam on threads of the host (see guest/platform/platform.h for what each name promises). Each
// CPU is a thread; the kernel's threads are contexts that it switches between. Atomics are real.
// Interrupts are taken where the kernel polls for them: when it enables them, halts, spins, delays
// or relaxes. So a thread is preempted there only.
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

namespace sipi::threads {

struct Cpu;

// What this host thread runs. Read by its address in each use: a context may go on on another host
// thread, so the compiler must not keep the address of a thread-local variable.
struct Running {
  PerCpu* self = nullptr;
  Thread* current = nullptr;
  Cpu* cpu = nullptr;
};

inline std::atomic<uint64_t> g_ticks_per_ms{0};

// One turn of a loop that spins: takes interrupts where they are enabled, and now and then lets
// other threads of the host run.
void SpinOnce(uint32_t turn);

}  // namespace sipi::threads

extern "C" {
extern thread_local constinit sipi::threads::Running sipi_threads_running;
}

namespace sipi::platform {

// --- Time: the host's TSC.

struct Deadline {
  uint64_t ticks;
};

inline uint64_t NowTicks() {
  uint32_t low, high;
  asm volatile("rdtsc" : "=a"(low), "=d"(high));
  return uint64_t{high} << 32 | low;
}
inline void SetTicksPerMs(uint32_t khz) {
  threads::g_ticks_per_ms.store(khz, std::memory_order_relaxed);
}
inline uint64_t TicksPerMs() { return threads::g_ticks_per_ms.load(std::memory_order_relaxed); }
inline uint64_t TicksOfUs(uint64_t us) { return us * TicksPerMs() / 1000; }
inline uint64_t NowNs() {
  const uint64_t ticks = NowTicks();
  return ticks / TicksPerMs() * 1000000 + ticks % TicksPerMs() * 1000000 / TicksPerMs();
}
inline Deadline DeadlineInUs(uint64_t us) { return {NowTicks() + TicksOfUs(us)}; }
inline constexpr Deadline NoDeadline() { return {~uint64_t{0}}; }
inline bool Bounded(Deadline d) { return d.ticks != NoDeadline().ticks; }
inline bool Expired(Deadline d) { return NowTicks() >= d.ticks; }
inline Deadline Earlier(Deadline a, Deadline b) { return a.ticks < b.ticks ? a : b; }

template <class T, class Pred>
bool SpinUntil(AtomicRef<T> ref, Pred pred, Deadline deadline) {
  for (uint32_t turn = 0; !pred(ref.Load(std::memory_order_acquire)); ++turn) {
    if (Expired(deadline)) return pred(ref.Load(std::memory_order_acquire));
    threads::SpinOnce(turn);
  }
  return true;
}
template <class T, class Pred>
bool SpinPolitely(AtomicRef<T> ref, Pred pred, uint32_t, Deadline deadline) {
  return SpinUntil(ref, pred, deadline);
}
void Relax();
void DelayUs(uint32_t us);
void DelayUntilUs(uint64_t begin_ticks, uint32_t us);

// --- Interrupts, this CPU's area, its trace.

void IrqDisable();
void IrqEnable();
bool IrqsEnabled();
void HaltEnabled();
[[noreturn]] void HaltForever();

inline PerCpu& ThisCpu() {
  PerCpu* self;
  asm volatile("movq %%fs:sipi_threads_running@tpoff, %0" : "=r"(self));
  return *self;
}

inline Thread* CurrentThread() {
  Thread* thread;
  asm volatile("movq %%fs:sipi_threads_running@tpoff+8, %0" : "=r"(thread));
  return thread;
}
void SetCurrentThread(Thread* thread);

void TraceAt(uint64_t ticks, abi::TraceEvent event, uint16_t target, uint32_t value);
void TracePacked(uint32_t event_and_target, uint32_t value);
inline void Trace(abi::TraceEvent event, uint16_t target, uint32_t value) {
  TracePacked(abi::PackTrace(event, target), value);
}

// --- Threads.

struct Context {
  void* stack_pointer = nullptr;
  void (*entry)(void*) = nullptr;
  void* argument = nullptr;
  // For the sanitizers, which must know on which stack the host's thread stands.
  const void* stack = nullptr;  // its lowest address
  uint64_t stack_bytes = 0;
  void* fake_stack = nullptr;  // AddressSanitizer's
  void* fiber = nullptr;       // ThreadSanitizer's
};
void* AllocateStack(Kernel& kernel);
void InitContext(Context& context, void* stack, void (*entry)(void*), void* argument);
void SwitchContext(Context& from, Context& to);

// --- Local APIC: identifiers are CPU numbers; the timer is in TSC-deadline mode.

uint32_t ApicRead(apic::Reg reg);
void ApicWrite(apic::Reg reg, uint32_t value);
void ApicWriteIcr(uint32_t low, uint32_t dest);
void WriteTscDeadline(uint64_t ticks);

// --- The machine.

uint32_t ReadPmTimer();
void WaitPmTicks(uint32_t begin, uint32_t ticks);
uint32_t MeasureBusKhz(uint32_t tsc_khz);

inline bool InvariantTsc() { return true; }
inline bool HasTscDeadline() { return true; }
inline bool HasTopologyLeaf() { return true; }
inline bool EncryptedGuest() { return false; }

inline void CacheSetup() {}
inline void PrepareStartup(Kernel&) {}
inline void Charge(abi::Charge) {}
inline void Doorbell(abi::Doorbell) {}
void SerialWrite(const char* text, uint64_t bytes);

[[noreturn]] void Exit(uint32_t code);
[[noreturn]] void Panic(const char* file, uint32_t line, const char* text);
inline void Break(const abi::FaultSpec&) {}

}  // namespace sipi::platform
