#include "vmm/irqchip/cpu_mailbox.h"

#include "vmm/device/monotonic_clock.h"
#include "vmm/irqchip/futex.h"
#include "vmm/irqchip/kick_signal.h"

namespace sipi {

WakeKind CpuMailbox::Kick() {
  uint32_t state = state_.load(std::memory_order_seq_cst);
  if (state == kSleeping &&
      state_.compare_exchange_strong(state, kUser, std::memory_order_seq_cst)) {
    FutexWake(state_);
    return WakeKind::kFutex;
  }
  // A failed exchange leaves the state found; a target that went from sleep to the guest in between
  // has looked at its work meanwhile.
  if (state == kGuest &&
      state_.compare_exchange_strong(state, kGuestKicked, std::memory_order_seq_cst)) {
    SendKick(tid_.load(std::memory_order_acquire));
    return WakeKind::kSignal;
  }
  return WakeKind::kNone;
}

WakeKind CpuMailbox::Post(uint32_t work) {
  work_.fetch_or(work, std::memory_order_seq_cst);
  return Kick();
}

WakeKind CpuMailbox::PostVector(Vector vector, bool level) {
  const uint64_t bit = uint64_t{1} << vector.value % 64;
  auto& words = level ? levels_ : vectors_;
  const uint64_t before = words[vector.value / 64].fetch_or(bit, std::memory_order_seq_cst);
  // It has not been taken since another sender set it, and that sender kicks.
  if ((before & bit) != 0) return WakeKind::kNone;
  return Post(kVectors);
}

WakeKind CpuMailbox::PostNmi() {
  uint32_t before = nmis_.load(std::memory_order_seq_cst);
  while (before < kMostNmis &&
         !nmis_.compare_exchange_weak(before, before + 1, std::memory_order_seq_cst)) {
  }
  return Post(kNmi);
}

WakeKind CpuMailbox::PostInit(bool* counted) {
  // kNmi stays: it may be of an NMI that another sender has counted meanwhile.
  nmis_.store(0, std::memory_order_seq_cst);
  work_.fetch_and(~uint32_t{kExtInt}, std::memory_order_seq_cst);
  *counted = startup_.PostInit();
  return *counted ? Post(kStartup) : WakeKind::kNone;
}

WakeKind CpuMailbox::PostSipi(Vector vector, bool* counted) {
  *counted = startup_.PostSipi(vector);
  return *counted ? Post(kStartup) : WakeKind::kNone;
}

CpuMailbox::VectorWords CpuMailbox::TakeVectors() {
  VectorWords words;
  for (size_t i = 0; i < words.size(); ++i) {
    words[i] = vectors_[i].exchange(0, std::memory_order_seq_cst);
  }
  return words;
}

// Hardly ever any: a look costs less than an exchange.
CpuMailbox::VectorWords CpuMailbox::TakeLevels() {
  VectorWords words = {};
  for (size_t i = 0; i < words.size(); ++i) {
    if (levels_[i].load(std::memory_order_seq_cst) == 0) continue;
    words[i] = levels_[i].exchange(0, std::memory_order_seq_cst);
  }
  return words;
}

bool CpuMailbox::EnterGuest() {
  state_.store(kGuest, std::memory_order_seq_cst);
  if (!HasWork()) return true;
  LeaveGuest();
  return false;
}

bool CpuMailbox::AnnounceSleep(uint32_t wake_mask) {
  state_.store(kSleeping, std::memory_order_seq_cst);
  if (!WorkOf(wake_mask)) return true;
  state_.store(kUser, std::memory_order_seq_cst);
  return false;
}

bool CpuMailbox::SleepAnnounced(uint32_t wake_mask, std::optional<uint64_t> deadline_ns) {
  while (true) {
    FutexWait(state_, kSleeping, deadline_ns);
    if (WorkOf(wake_mask)) break;
    if (deadline_ns && MonotonicNs() >= *deadline_ns) break;
    // Woken for work that this sleep is not for, or for nothing. Announce again: a sender that
    // woke us has set the state back.
    if (!AnnounceSleep(wake_mask)) return true;
  }
  state_.store(kUser, std::memory_order_seq_cst);
  return WorkOf(wake_mask);
}

}  // namespace sipi
