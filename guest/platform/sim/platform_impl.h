// The seam in the simulator (see guest/platform/platform.h for what each name promises). A call
// spends virtual time on the running CPU and may let others run; between calls it is alone.
#pragma once

#include <atomic>
#include <cstdint>

#include "apic/regs/icr.h"
#include "apic/regs/registers.h"
#include "guest/abi/boot_params.h"
#include "guest/abi/layout.h"
#include "guest/abi/trace.h"
#include "guest/kernel/percpu.h"
#include "guest/platform/atomic_word.h"
#include "guest/platform/sim/suspended.h"

namespace sipi::sim {

// Before an atomic access: what its line costs, and everything that comes before it.
void BeforeAccess(const void* word, bool write);
void BeforeStore(const void* word, uint64_t value);
void AfterStore(const void* word);
// Exploration's store buffer: the store waits in it; a load finds its own CPU's youngest there.
bool Buffered(void* word, uint32_t bytes, uint64_t value, bool fenced);
bool Forwarded(const void* word, uint64_t* value);
// Spins until the word is stored to. False: the deadline has passed. `slice_us`, if not 0: lets
// others run after each slice.
bool SpinOn(const void* word, uint64_t deadline_ticks, uint32_t slice_us);
// The last thing that a call of the seam does in which interrupts may have been taken: here a
// thread may lose its CPU, and go on on another one.
void MayPreempt();

}  // namespace sipi::sim

namespace sipi::platform {

// --- Atomics. A store is seen at once by all, whatever its order; but for exploration, where plain
// stores may wait in their CPU's buffer, as on x86.

template <class T>
class AtomicRef {
 public:
  explicit AtomicRef(T& word) : word_(&word) {}
  T Load(std::memory_order) const {
    sim::BeforeAccess(word_, false);
    uint64_t own = 0;
    const T value = sim::Forwarded(word_, &own) ? static_cast<T>(own)
                                                : __atomic_load_n(word_, __ATOMIC_RELAXED);
    sim::MayPreempt();
    return value;
  }
  void Store(T value, std::memory_order order) const {
    sim::BeforeAccess(word_, true);
    const bool fenced = order == std::memory_order_seq_cst;
    if (!sim::Buffered(word_, sizeof(T), static_cast<uint64_t>(value), fenced)) {
      sim::BeforeStore(word_, static_cast<uint64_t>(value));
      __atomic_store_n(word_, value, __ATOMIC_RELAXED);
      sim::AfterStore(word_);
    }
    sim::MayPreempt();
  }
  T Exchange(T value, std::memory_order) const {
    Locked(value);
    const T before = __atomic_exchange_n(word_, value, __ATOMIC_RELAXED);
    sim::AfterStore(word_);
    sim::MayPreempt();
    return before;
  }
  T FetchAdd(T value, std::memory_order) const {
    sim::BeforeAccess(word_, true);
    (void)sim::Buffered(word_, 0, 0, true);
    const T before = __atomic_fetch_add(word_, value, __ATOMIC_RELAXED);
    sim::AfterStore(word_);
    sim::MayPreempt();
    return before;
  }
  bool CompareExchange(T& expected, T value, std::memory_order) const {
    sim::BeforeAccess(word_, true);
    (void)sim::Buffered(word_, 0, 0, true);
    if (__atomic_load_n(word_, __ATOMIC_RELAXED) == expected) {
      sim::BeforeStore(word_, static_cast<uint64_t>(value));
    }
    const bool done = __atomic_compare_exchange_n(word_, &expected, value, false, __ATOMIC_RELAXED,
                                                  __ATOMIC_RELAXED);
    if (done) sim::AfterStore(word_);
    sim::MayPreempt();
    return done;
  }
  const void* address() const { return word_; }

 private:
  // A locked write drains what stands before it.
  void Locked(T value) const {
    sim::BeforeAccess(word_, true);
    (void)sim::Buffered(word_, 0, 0, true);
    sim::BeforeStore(word_, static_cast<uint64_t>(value));
  }

  T* word_;
};

// --- Time.

struct Deadline {
  uint64_t ticks;
};

uint64_t NowTicks();
uint64_t NowNs();
void SetTicksPerMs(uint32_t khz);
uint64_t TicksOfUs(uint64_t us);
inline Deadline DeadlineInUs(uint64_t us) { return {NowTicks() + TicksOfUs(us)}; }
inline constexpr Deadline NoDeadline() { return {~uint64_t{0}}; }
inline bool Bounded(Deadline d) { return d.ticks != NoDeadline().ticks; }
inline bool Expired(Deadline d) { return Bounded(d) && NowTicks() >= d.ticks; }
inline Deadline Earlier(Deadline a, Deadline b) { return a.ticks < b.ticks ? a : b; }

template <class T, class Pred>
bool SpinPolitely(AtomicRef<T> ref, Pred pred, uint32_t slice_us, Deadline deadline) {
  while (!pred(ref.Load(std::memory_order_acquire))) {
    if (sim::SpinOn(ref.address(), deadline.ticks, slice_us)) continue;
    return pred(ref.Load(std::memory_order_acquire));
  }
  return true;
}
template <class T, class Pred>
bool SpinUntil(AtomicRef<T> ref, Pred pred, Deadline deadline) {
  return SpinPolitely(ref, pred, 0, deadline);
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

PerCpu& ThisCpu();

// --- Threads: a stack of the machine's pool each, made at the first switch to it.

struct Context {
  sim::Suspended at;  // no stack: it has not run yet
  void (*entry)(void*) = nullptr;
  void* argument = nullptr;
};
Thread* CurrentThread();
void SetCurrentThread(Thread* thread);
void* AllocateStack(Kernel& kernel);
void InitContext(Context& context, void* stack, void (*entry)(void*), void* argument);
void SwitchContext(Context& from, Context& to);

void TracePacked(uint32_t event_and_target, uint32_t value);
void TraceAt(uint64_t ticks, abi::TraceEvent event, uint16_t target, uint32_t value);
inline void Trace(abi::TraceEvent event, uint16_t target, uint32_t value) {
  TracePacked(abi::PackTrace(event, target), value);
}

// --- Local APIC, in the mode that the machine was booted for.

uint32_t ApicRead(apic::Reg reg);
void ApicWrite(apic::Reg reg, uint32_t value);
void ApicWriteIcr(uint32_t low, uint32_t dest);
void WriteTscDeadline(uint64_t ticks);

// --- The machine.

uint32_t ReadPmTimer();
void WaitPmTicks(uint32_t begin, uint32_t ticks);
uint32_t MeasureBusKhz(uint32_t tsc_khz);

bool InvariantTsc();
bool HasTscDeadline();
bool HasTopologyLeaf();
bool EncryptedGuest();

void CacheSetup();
void PrepareStartup(Kernel& kernel);
void Charge(abi::Charge kind);
void Doorbell(abi::Doorbell value);
void SerialWrite(const char* text, uint64_t bytes);

[[noreturn]] void Exit(uint32_t code);
[[noreturn]] void Panic(const char* file, uint32_t line, const char* text);
void Break(const abi::FaultSpec& fault);

}  // namespace sipi::platform
