#include "vmm/vcpu/kick_timer.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>

#include "vmm/device/monotonic_clock.h"
#include "vmm/irqchip/kick_signal.h"

namespace sipi {

KickTimer::~KickTimer() {
  if (timer_) timer_delete(*timer_);
}

int KickTimer::ArmAt(uint64_t deadline_ns) {
  if (!timer_) {
    struct sigevent event = {};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = KickSignal();
    event._sigev_un._tid = gettid();  // glibc 2.36 has no sigev_notify_thread_id
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return errno;
    timer_ = timer;
  }
  if (armed_ns_ == deadline_ns) return 0;
  struct itimerspec when = {};
  when.it_value = TimespecOfNs(deadline_ns == 0 ? 1 : deadline_ns);  // 0 would disarm
  if (timer_settime(*timer_, TIMER_ABSTIME, &when, nullptr) != 0) return errno;
  armed_ns_ = deadline_ns;
  return 0;
}

}  // namespace sipi
