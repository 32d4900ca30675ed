// The AP's side of bring-up: alive, wait to be let go, STARTING, ONLINE, idle.
#include "guest/kernel/apic.h"
#include "guest/kernel/call.h"
#include "guest/kernel/cpuhp.h"
#include "guest/kernel/handshake.h"
#include "guest/kernel/hotplug/ap_idle.h"
#include "guest/kernel/sched/thread.h"
#include "guest/kernel/smpboot.h"
#include "guest/kernel/tree.h"
#include "guest/kernel/wait.h"

namespace sipi {
namespace {

using abi::CpuhpState;
using abi::SyncState;
using abi::TraceEvent;

// Reports alive; parks if the control CPU has given this AP up in the meantime.
void ReportAlive(PerCpu& self) {
  if (!SyncTransition(*self.kernel, self.cpu, SyncState::kKicked, SyncState::kAlive)) {
    platform::Trace(TraceEvent::kCancelled, 0, 0);
    Park(self);
  }
  platform::Trace(TraceEvent::kAlive, 0, 0);
}

void WaitUntilReleased(PerCpu& self) {
  Kernel& kernel = *self.kernel;
  if (self.slot->on_its_own != 0) {
    // Cancelled in between: the loop below sees it.
    (void)SyncTransition(kernel, self.cpu, SyncState::kAlive, SyncState::kShouldOnline);
  } else {
    NotifyCpu(self, kBootCpu);
    // Bounded by the control CPU, which lets this AP go or cancels it.
    WaitFor(
        self, SyncWord(kernel, self.cpu),
        [](uint32_t value) { return value != static_cast<uint32_t>(SyncState::kAlive); },
        platform::NoDeadline(), kernel.knobs().ap_wait);
  }
  if (SyncStateOf(kernel, self.cpu) != SyncState::kShouldOnline) {
    platform::Trace(TraceEvent::kCancelled, 0, 0);
    Park(self);
  }
  platform::Trace(TraceEvent::kReleased, 0, 0);
}

// Undoes what this CPU has done itself, and parks. The control CPU undoes its own section.
[[noreturn]] void TakeSelfDown(PerCpu& self) {
  CpuhpDown(self, self.cpu, Section::kStarting);
  if (self.kernel->hotplug != nullptr) IdleDead(self);
  Park(self);
}

void RunStarting(PerCpu& self) {
  Kernel& kernel = *self.kernel;
  (void)CpuhpUp(self, self.cpu, Section::kStarting, CpuhpState::kApOnline);  // cannot fail
  if (!SyncTransition(kernel, self.cpu, SyncState::kShouldOnline, SyncState::kOnline))
    TakeSelfDown(self);
  if (self.slot->on_its_own == 0) NotifyCpu(self, kBootCpu);
}

// Runs the ONLINE section once the control CPU has raised the target. Interrupts on.
void RunOnline(PerCpu& self) {
  Kernel& kernel = *self.kernel;
  platform::AtomicRef<uint32_t> target(self.slot->cpuhp_target);
  const auto wanted = [](uint32_t value) {
    return value == static_cast<uint32_t>(CpuhpState::kOnline);
  };
  if (!wanted(target.Load(std::memory_order_seq_cst))) {
    (void)CpuhpUp(self, self.cpu, Section::kOnline, CpuhpState::kApOnlineIdle);  // cannot fail
    WaitFor(self, target, wanted, platform::NoDeadline(), kernel.knobs().ap_wait);
  }
  const Error error = CpuhpUp(self, self.cpu, Section::kOnline, CpuhpState::kApActive);
  if (error == Error::kNone) {
    platform::Trace(TraceEvent::kOnline, static_cast<uint16_t>(self.cpu.value), 0);
    platform::AtomicRef<uint32_t> state(self.slot->cpuhp_state);
    state.Exchange(static_cast<uint32_t>(CpuhpState::kOnline), std::memory_order_seq_cst);
  } else {
    // Out of the online mask before anybody is told: nobody may count a CPU that is lost.
    (void)SyncTransition(kernel, self.cpu, SyncState::kOnline, SyncState::kShouldDie);
    platform::IrqDisable();
    CpuhpDown(self, self.cpu, Section::kStarting);
  }
  const bool last = kernel.remaining.FetchAdd(self.slot->on_its_own != 0 ? ~0u : 0u,
                                              std::memory_order_seq_cst) == 1;
  if (last || self.slot->on_its_own == 0) NotifyCpu(self, kBootCpu);
  if (error != Error::kNone) Park(self);
}

// Tickless: the timer is never armed here, so an idle CPU costs nothing. Whoever is given up while
// it is online sees it here, woken by CancelAp, even if its retry has begun meanwhile.
[[noreturn]] void Idle(PerCpu& self) {
  platform::IrqDisable();
  while (SyncStateOf(*self.kernel, self.cpu) == SyncState::kOnline) platform::HaltEnabled();
  platform::Trace(TraceEvent::kCancelled, 0, 0);
  CpuhpDown(self, self.cpu, Section::kOnline);
  CpuhpDown(self, self.cpu, Section::kStarting);
  Park(self);
}

// A broadcast also reaches a CPU whose area could not be prepared: it has nothing to run on, and
// says no more than that it halts, before anybody sends it an INIT.
[[noreturn]] void HaltUnprepared(Kernel& kernel, const PerCpu& self) {
  const uint64_t offset = reinterpret_cast<uint64_t>(&self) - kernel.params->percpu_gpa;
  const CpuNumber cpu(static_cast<uint32_t>(offset / kernel.params->percpu_stride_bytes));
  platform::AtomicRef<uint32_t>(kernel.slot(cpu).parked).Store(1, std::memory_order_seq_cst);
  platform::HaltForever();
}

}  // namespace

namespace {

// A retry may have begun before this CPU came here: it would wait for one that runs already, and
// nobody would know that only an INIT helps.
void SayDead(PerCpu& self) {
  SyncState state = SyncStateOf(*self.kernel, self.cpu);
  while (state == SyncState::kShouldDie || state == SyncState::kKicked) {
    if (SyncTransition(*self.kernel, self.cpu, state, SyncState::kDead)) break;
    state = SyncStateOf(*self.kernel, self.cpu);
  }
  NotifyCpu(self, kBootCpu);
}

}  // namespace

void Park(PerCpu& self) {
  platform::IrqDisable();
  platform::Trace(TraceEvent::kParked, 0, 0);
  AnswerOnTheWayDown(self);
  SayDead(self);
  // From here on nobody's word is looked at: where none was given up, a retry waits for this.
  platform::AtomicRef<uint32_t>(self.slot->parked).Store(1, std::memory_order_seq_cst);
  platform::HaltForever();
}

void ApMain(Kernel& kernel, PerCpu& self, uint64_t first_instruction_ticks) {
  if (self.kernel == nullptr) HaltUnprepared(kernel, self);
  platform::TraceAt(first_instruction_ticks, TraceEvent::kFirstInstruction, 0, 0);
  platform::Trace(TraceEvent::kLongMode, 0, 0);
  if (kernel.params->fault.cpu == self.cpu.value) platform::Break(kernel.params->fault);
  EnableLocalApic();
  if (kernel.entry(self.cpu).thread == 0) platform::Charge(abi::Charge::kMicrocode);
  ReportAlive(self);
  if (self.slot->tree_rank != 0) KickTreeChildren(self);
  WaitUntilReleased(self);
  RunStarting(self);
  if (kernel.hotplug != nullptr) {
    ReachIdle(self);
    IdleLoop(self);
  }
  platform::IrqEnable();
  RunOnline(self);
  Idle(self);
}

}  // namespace sipi
