#include "guest/kernel/tsc_check.h"

#include "guest/kernel/call.h"
#include "guest/kernel/handshake.h"
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

// Neither side depends on the other's arrival: an AP whose control CPU does not come goes on
// without a check, and the control CPU reads for its time, whoever else does. The request is taken
// back to 0 by one of three: the control CPU, which has said before in tsc_check_served whom it
// comes to and clears that when it has read; the control CPU, which gives this AP up; the AP, tired
// of waiting.
constexpr uint32_t Name(CpuNumber cpu) { return cpu.value + 1; }

bool TakeBack(Kernel& kernel, uint32_t name) {
  return kernel.tsc_check_request.Ref().CompareExchange(name, 0, std::memory_order_seq_cst);
}

// Asks for the control CPU. False: it does not come.
bool MeetControlCpu(PerCpu& self, CpuNumber cpu) {
  Kernel& kernel = *self.kernel;
  const uint32_t name = Name(cpu);
  kernel.tsc_check_request.Exchange(name, std::memory_order_seq_cst);
  // Dekker's pattern with WithdrawTscCheck: who is given up from here on is told there.
  if (SyncWord(kernel, cpu).Load(std::memory_order_seq_cst) ==
      static_cast<uint32_t>(abi::SyncState::kShouldOnline)) {
    NotifyCpu(self, kBootCpu);
    (void)platform::SpinUntil(
        kernel.tsc_check_request.Ref(), [name](uint32_t value) { return value != name; },
        PartnerDeadline(kernel));
  }
  return !TakeBack(kernel, name) && kernel.tsc_check_served.Load(std::memory_order_seq_cst) == name;
}

// With the control CPU. Returns the largest step back, once the control CPU has left.
uint32_t CheckTogether(Kernel& kernel, CpuNumber cpu) {
  ReadInTurn(kernel);
  const uint32_t name = Name(cpu);
  // Bounded by the control CPU, which needs nobody to come to its end.
  (void)platform::SpinUntil(
      kernel.tsc_check_served.Ref(), [name](uint32_t value) { return value != name; },
      platform::NoDeadline());
  const uint32_t back = kernel.tsc_backward_ticks.Load(std::memory_order_relaxed);
  if (back > kernel.result->tsc_backward_ticks) kernel.result->tsc_backward_ticks = back;
  return back;
}

}  // namespace

Error StartTscCheck(PerCpu& self, CpuNumber cpu) {
  Kernel& kernel = *self.kernel;
  if (kernel.knobs().tsc_check == 0) return Error::kNone;
  LockLong(kernel, kernel.tsc_check_lock);
  platform::Trace(abi::TraceEvent::kTscCheckBegin, static_cast<uint16_t>(cpu.value), 0);
  // Nobody else reads: an AP has the lock, and the control CPU has left before its last holder did.
  kernel.tsc_last_ticks = 0;
  kernel.tsc_backward_ticks.Store(0, std::memory_order_relaxed);
  const uint32_t back =
      MeetControlCpu(self, cpu) ? CheckTogether(kernel, cpu) : abi::kTscNotChecked;
  platform::Trace(abi::TraceEvent::kTscCheckEnd, static_cast<uint16_t>(cpu.value), back);
  UnlockShort(kernel.tsc_check_lock);
  return Error::kNone;
}

void ServeTscCheck(PerCpu& self) {
  Kernel& kernel = *self.kernel;
  const uint32_t name = kernel.tsc_check_request.Load(std::memory_order_seq_cst);
  if (name == 0) return;
  kernel.tsc_check_served.Exchange(name, std::memory_order_seq_cst);
  if (TakeBack(kernel, name)) ReadInTurn(kernel);  // else the AP did not wait
  kernel.tsc_check_served.Exchange(0, std::memory_order_seq_cst);
}

void WithdrawTscCheck(Kernel& kernel, CpuNumber cpu) {
  if (kernel.knobs().tsc_check == 0) return;
  (void)TakeBack(kernel, Name(cpu));
}

}  // namespace sipi
