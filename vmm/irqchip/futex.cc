#include "vmm/irqchip/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vmm/device/monotonic_clock.h"

namespace sipi {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t), "futex(2) wants a bare word");

void FutexWait(const std::atomic<uint32_t>& word, uint32_t expected,
               std::optional<uint64_t> deadline_ns) {
  timespec deadline;
  if (deadline_ns) deadline = TimespecOfNs(*deadline_ns);
  // FUTEX_WAIT_BITSET takes an absolute time-out, FUTEX_WAIT a relative one (futex(2)).
  syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, expected, deadline_ns ? &deadline : nullptr,
          nullptr, FUTEX_BITSET_MATCH_ANY);
}

void FutexWake(const std::atomic<uint32_t>& word, int count) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

}  // namespace sipi
