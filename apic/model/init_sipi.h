// INIT and Start-Up IPIs of one CPU: what is posted, what counts, what the CPU then does.
//
// Source: SDM vol 3A, 9.4 "Multiple-Processor (MP) Initialization", 11.4.7.3 "Local APIC State
// After an INIT Reset (Wait-for-SIPI State)", 11.6.1 (INIT, Start Up); MP specification 1.4, B.4.
//
// All state is one 64-bit word that senders and the target change by compare-exchange. It carries
// the target's own state (does it wait for a SIPI, is it the BSP), so that a SIPI which does not
// count is dropped when it is posted and cannot linger until some later INIT:
//
//   state           INIT posted                          SIPI posted
//   running         INIT pending                         dropped
//   waiting         INIT pending (it resets again)       SIPI pending; later ones dropped
//   INIT pending    merged                               SIPI pending behind it, the first counts
//     ... on a BSP  merged                               dropped: a BSP does not wait after INIT
//   SIPI pending    INIT pending, the SIPI is discarded  dropped
//
// Both may be pending before the target runs at all; they count in order. Halted is running here:
// INIT wakes a halted CPU as it stops a running one.
// Not modelled: blocking of INIT and SIPI by VMX operation and SMM, and the INIT level de-assert
// message, which the router drops.
#pragma once

#include <atomic>
#include <cstdint>

#include "apic/regs/types.h"

namespace sipi::apic {

// The word as a value.
struct StartupWord {
  static constexpr uint64_t kInitPending = 1u << 0;
  static constexpr uint64_t kSipiPending = 1u << 1;
  static constexpr uint64_t kWaitForSipi = 1u << 2;  // set and cleared by the target alone
  static constexpr uint64_t kBsp = 1u << 3;          // IA32_APIC_BASE[8]; set by the target alone
  static constexpr unsigned kVectorShift = 8;        // the pending SIPI's vector; 0 without one
  static constexpr uint64_t kSipiBits = kSipiPending | uint64_t{0xff} << kVectorShift;

  uint64_t bits = 0;

  constexpr bool Has(uint64_t flag) const { return (bits & flag) != 0; }
  constexpr Vector SipiVector() const { return Vector(static_cast<uint8_t>(bits >> kVectorShift)); }
  constexpr bool operator==(const StartupWord&) const = default;
};

// Power-up: the BSP runs, an AP waits for a SIPI (9.4.3).
constexpr StartupWord PowerOnStartupWord(bool bsp) {
  return {bsp ? StartupWord::kBsp : StartupWord::kWaitForSipi};
}

// --- Poster side. The result equals the argument when the message did not count.
constexpr StartupWord PostInit(StartupWord word) {
  return {(word.bits & ~StartupWord::kSipiBits) | StartupWord::kInitPending};
}

constexpr StartupWord PostSipi(StartupWord word, Vector vector) {
  const bool will_wait = word.Has(StartupWord::kInitPending) ? !word.Has(StartupWord::kBsp)
                                                             : word.Has(StartupWord::kWaitForSipi);
  if (!will_wait || word.Has(StartupWord::kSipiPending)) return word;
  return {word.bits | StartupWord::kSipiPending |
          uint64_t{vector.value} << StartupWord::kVectorShift};
}

// --- Consumer side.
struct StartupAction {
  enum class Kind : uint8_t {
    kNone,
    kInit,           // reset (cpu_reset.h, LocalApic::Init). An AP then waits; a BSP goes on at
                     // the reset vector, F000:FFF0
    kStart,          // leave wait-for-SIPI at `vector`
    kInitThenStart,  // reset, then start at `vector`
  };
  Kind kind = Kind::kNone;
  Vector vector;
  constexpr bool operator==(const StartupAction&) const = default;
};

struct Consumed {
  StartupWord next;
  StartupAction action;
};

// Takes everything that is pending.
constexpr Consumed Consume(StartupWord word) {
  using Kind = StartupAction::Kind;
  const uint64_t bsp = word.bits & StartupWord::kBsp;
  const bool init = word.Has(StartupWord::kInitPending);
  // A CPU that became BSP with both pending restarts at the reset vector: the SIPI is void.
  const bool sipi = word.Has(StartupWord::kSipiPending) && !(init && bsp != 0);
  if (sipi) return {{bsp}, {init ? Kind::kInitThenStart : Kind::kStart, word.SipiVector()}};
  if (init) return {{bsp != 0 ? bsp : StartupWord::kWaitForSipi}, {Kind::kInit, Vector()}};
  return {word, {}};
}

// The word in shared memory: any thread posts, the target's thread takes. Lock-free. Whoever posts
// then kicks the target; what was written before a post is visible after the Take that sees it.
class StartupMailbox {
 public:
  explicit StartupMailbox(bool bsp) : word_(PowerOnStartupWord(bsp).bits) {}

  // True if the message changed anything, that is if the target needs a kick.
  bool PostInit();
  bool PostSipi(Vector vector);

  // Target's thread only.
  StartupAction Take();
  void SetBsp(bool bsp);

  StartupWord Peek() const { return {word_.load(std::memory_order_acquire)}; }
  // Cheap test before each entry into the guest.
  bool Pending() const { return Peek().Has(StartupWord::kInitPending | StartupWord::kSipiPending); }
  bool WaitsForSipi() const { return Peek().Has(StartupWord::kWaitForSipi); }

 private:
  std::atomic<uint64_t> word_;
};

}  // namespace sipi::apic
