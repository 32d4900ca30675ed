#include "guest/kernel/tsc_check.h"

#include "guest/kernel/call.h"
#include "guest/kernel/wait.h"

namespace sipi {
namespace {

platform::Deadline PartnerDeadline(Kernel& kernel) {
  return platform::DeadlineInUs(uint64_t{kernel.knobs().handshake_timeout_ms} * 1000);
}

// One AP at a time, each for as long as its check takes: a wait that lets others run at once.
void LockLong(Kernel& kernel, platform::Atomic<uint32_t>& lock) {
  while (lock.Exchange(1, std::memory_order_acquire) != 0) {
    // Bounded by those before it, each of which has a deadline for its partner.
    (void)platform::SpinPolitely(
        lock.Ref(), [](uint32_t value) { return value == 0; }, kernel.knobs().tsc_check_us / 8 + 1,
        platform::NoDeadline());
  }
}

// Both sides read in turn until the time is over.
void ReadInTurn(Kernel& kernel) {
  const platform::Deadline end = platform::DeadlineInUs(kernel.knobs().tsc_check_us);
  do {
    LockShort(kernel, kernel.tsc_pair_lock);
    const uint64_t last = kernel.tsc_last_ticks;
    const uint64_t now = platform::NowTicks();
    kernel.tsc_last_ticks = now;
    if (now < last) {
      const auto back = static_cast<uint32_t>(last - now);
      if (back > kernel.tsc_backward_ticks.Load(std::memory_order_relaxed)) {
        kernel.tsc_backward_ticks.Store(back, std::memory_order_relaxed);
      }
    }
    UnlockShort(kernel.tsc_pair_lock);
  } while (!platform::Expired(end));
}

// Arrives, and waits for the other side: 1 and 2 are the arrivals, 3 and 4 the departures.
void Meet(Kernel& kernel, uint32_t both) {
  kernel.tsc_check_ready.FetchAdd(1, std::memory_order_seq_cst);
  SIPI_ASSERT(platform::SpinUntil(
      kernel.tsc_check_ready.Ref(), [both](uint32_t value) { return value >= both || value == 0; },
      PartnerDeadline(kernel)));
}

}  // namespace

Error StartTscCheck(PerCpu& self, CpuNumber cpu) {
  Kernel& kernel = *self.kernel;
  if (kernel.knobs().tsc_check == 0) return Error::kNone;
  LockLong(kernel, kernel.tsc_check_lock);
  platform::Trace(abi::TraceEvent::kTscCheckBegin, static_cast<uint16_t>(cpu.value), 0);
  kernel.tsc_check_request.Exchange(cpu.value + 1, std::memory_order_seq_cst);
  NotifyCpu(self, kBootCpu);
  Meet(kernel, 2);
  ReadInTurn(kernel);
  Meet(kernel, 4);
  // The control CPU has left: it cleared the request, and this side resets the meeting place for
  // the next AP.
  kernel.tsc_check_ready.Store(0, std::memory_order_seq_cst);
  platform::Trace(abi::TraceEvent::kTscCheckEnd, static_cast<uint16_t>(cpu.value),
                  kernel.tsc_backward_ticks.Load(std::memory_order_relaxed));
  UnlockShort(kernel.tsc_check_lock);
  return Error::kNone;
}

void ServeTscCheck(PerCpu& self) {
  Kernel& kernel = *self.kernel;
  Meet(kernel, 2);
  ReadInTurn(kernel);
  kernel.tsc_check_request.Exchange(0, std::memory_order_seq_cst);
  kernel.tsc_check_ready.FetchAdd(1, std::memory_order_seq_cst);
  // Not waiting for the AP's departure: its own count of 4 needs this side's arrival only.
  kernel.result->tsc_backward_ticks = kernel.tsc_backward_ticks.Load(std::memory_order_relaxed);
}

}  // namespace sipi
