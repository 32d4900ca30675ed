// What other threads want of a vCPU's thread, and how they get its attention.
//
// A sender leaves its message (a bit, a vector, an INIT) and then calls Kick, which does nothing, a
// futex wake or a signal, as the target's state needs. No lock anywhere. Why nothing gets lost: the
// target announces a state (in the guest, sleeping) and then looks at its work once more; a sender
// leaves its work and then looks at the state; all four are sequentially consistent. So either the
// target sees the work, or the sender sees the state and wakes it:
//
//        work                     state
//   user ---- EnterGuest -------> guest ---- Kick ----> guest-kicked    + signal
//   user ---- Sleep ------------> sleeping - Kick ----> user            + futex wake
//   any  <--- LeaveGuest, end of Sleep (by the target itself)
//
// Only the sender that makes the transition pays for the wake-up.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "apic/model/init_sipi.h"
#include "apic/regs/types.h"
#include "vmm/irqchip/side_events.h"

namespace sipi {

enum class WakeKind : uint8_t { kNone, kFutex, kSignal };

// All exist before any vCPU does, so that a message to a CPU that is still being made is kept.
class alignas(128) CpuMailbox {
 public:
  enum Work : uint32_t {
    kStop = 1u << 0,     // leave for good
    kStartup = 1u << 1,  // look at startup()
    kVectors = 1u << 2,  // look at TakeVectors() and TakeLevels()
    kNmi = 1u << 3,      // look at TakeNmis()
    kInspect = 1u << 4,  // say what the vCPU is doing
    kExtInt = 1u << 5,   // an ExtINT message: the vector is the 8259's
    kIntPin = 1u << 6,   // the 8259's INT has risen: look at it
  };
  using VectorWords = std::array<uint64_t, 4>;

  explicit CpuMailbox(bool bsp, size_t side_events = SideEvents::kCapacity)
      : startup_(bsp), side_events_(side_events) {}

  // --- Any thread. Each leaves a message and kicks; the result says what the kick took.
  WakeKind Post(uint32_t work);
  // `level`: a device's level-triggered interrupt (its TMR bit). It does not merge with an edge on
  // the same vector: both are taken.
  WakeKind PostVector(Vector vector, bool level = false);
  // Of NMIs that come before the CPU takes any, two count: one is delivered, one latched meanwhile
  // (SDM vol 3A, 6.7.1).
  WakeKind PostNmi();
  // Whether the message counted goes to *counted (apic/model/init_sipi.h). An INIT takes back the
  // NMIs and the ExtINT that were posted before it: they are for the CPU that it resets.
  WakeKind PostInit(bool* counted);
  WakeKind PostSipi(Vector vector, bool* counted);

  // True if some message has not been taken yet.
  bool HasWork() const { return work_.load(std::memory_order_seq_cst) != 0; }
  SideEvents& side_events() { return side_events_; }
  const SideEvents& side_events() const { return side_events_; }

  // --- The vCPU's thread.
  void SetThread(pid_t tid) { tid_.store(tid, std::memory_order_release); }

  // Everything that has been posted, once.
  uint32_t TakeWork() {
    if (work_.load(std::memory_order_relaxed) == 0) return 0;
    return work_.exchange(0, std::memory_order_seq_cst);
  }
  bool StopPosted() const { return (work_.load(std::memory_order_acquire) & kStop) != 0; }
  VectorWords TakeVectors();
  uint32_t TakeNmis() { return nmis_.exchange(0, std::memory_order_seq_cst); }  // 0, 1 or 2
  VectorWords TakeLevels();  // likewise, those that are level-triggered
  apic::StartupMailbox& startup() { return startup_; }

  // Announces that KVM_RUN follows. False, and nothing announced, if there is work.
  bool EnterGuest();
  void LeaveGuest() { state_.store(kUser, std::memory_order_seq_cst); }

  // Sleeps until there is work of `wake_mask` (true) or the deadline on CLOCK_MONOTONIC has passed
  // (false). `on_asleep`, where given, is called once the sleep is announced and no work is there.
  template <class OnAsleep>
  bool Sleep(uint32_t wake_mask, std::optional<uint64_t> deadline_ns, OnAsleep&& on_asleep) {
    if (!AnnounceSleep(wake_mask)) return true;
    on_asleep();
    return SleepAnnounced(wake_mask, deadline_ns);
  }
  bool Sleep(uint32_t wake_mask, std::optional<uint64_t> deadline_ns) {
    return Sleep(wake_mask, deadline_ns, [] {});
  }

  static constexpr uint32_t kMostNmis = 2;

 private:
  enum State : uint32_t { kUser, kGuest, kGuestKicked, kSleeping };
  bool WorkOf(uint32_t mask) const { return (work_.load(std::memory_order_seq_cst) & mask) != 0; }
  bool AnnounceSleep(uint32_t wake_mask);
  bool SleepAnnounced(uint32_t wake_mask, std::optional<uint64_t> deadline_ns);
  WakeKind Kick();

  std::atomic<uint32_t> state_{kUser};
  std::atomic<uint32_t> work_{0};
  std::atomic<pid_t> tid_{0};
  apic::StartupMailbox startup_;
  std::atomic<uint32_t> nmis_{0};
  std::array<std::atomic<uint64_t>, 4> vectors_ = {};
  std::array<std::atomic<uint64_t>, 4> levels_ = {};
  SideEvents side_events_;
};

}  // namespace sipi
