// A one-shot timer that kicks one thread out of KVM_RUN at a point in time: the local APIC timer's
// expiry while its CPU runs guest code. A halted CPU needs none, it sleeps with a deadline.
#pragma once

#include <time.h>

#include <cstdint>
#include <optional>

namespace sipi {

// Belongs to the thread that it kicks. The kernel's timer is made when it is first armed: most CPUs
// never need one.
class KickTimer {
 public:
  KickTimer() = default;
  ~KickTimer();
  KickTimer(const KickTimer&) = delete;
  KickTimer& operator=(const KickTimer&) = delete;

  // Kicks the calling thread at `deadline_ns` on CLOCK_MONOTONIC, at once if that has passed.
  // Replaces the former deadline; costs nothing if it is the same. Returns 0 or errno, and then
  // nobody is kicked: EAGAIN if the user has no timer left (RLIMIT_SIGPENDING counts them).
  [[nodiscard]] int ArmAt(uint64_t deadline_ns);

 private:
  std::optional<timer_t> timer_;
  uint64_t armed_ns_ = 0;
};

}  // namespace sipi
