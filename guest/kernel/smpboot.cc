// The control CPU's side of bring-up.
#include "guest/kernel/smpboot.h"

#include "guest/kernel/boot_passes.h"
#include "guest/kernel/call.h"
#include "guest/kernel/handshake.h"
#include "guest/kernel/kick.h"
#include "guest/kernel/tsc_check.h"
#include "guest/kernel/wait.h"

namespace sipi {
namespace {

using abi::CpuhpState;
using abi::SyncState;
using abi::TraceEvent;
using sequence::Goal;
using sequence::Scope;

platform::Deadline HandshakeDeadline(Kernel& kernel) {
  return platform::DeadlineInUs(uint64_t{kernel.knobs().handshake_timeout_ms} * 1000);
}

uint16_t Traced(CpuNumber cpu) { return static_cast<uint16_t>(cpu.value); }

// A wait of the control CPU. While it waits it also takes its part in TSC checks that APs ask for.
template <class Pred>
bool ControlWait(PerCpu& self, platform::AtomicRef<uint32_t> word, Pred pred,
                 platform::Deadline deadline) {
  Kernel& kernel = *self.kernel;
  if (pred(word.Load(std::memory_order_acquire))) return true;
  if (kernel.knobs().tsc_check == 0) {
    return WaitFor(self, word, pred, deadline, abi::WaitMode::kHalt);
  }
  const auto asked = [&kernel] {
    return kernel.tsc_check_request.Load(std::memory_order_seq_cst) != 0;
  };
  const auto done = [&] { return asked() || pred(word.Load(std::memory_order_seq_cst)); };
  for (;;) {
    HaltOnce(self, done, deadline);
    platform::IrqEnable();
    if (asked()) ServeTscCheck(self);
    if (pred(word.Load(std::memory_order_acquire))) return true;
    if (platform::Expired(deadline)) return false;
  }
}

// Likewise, for as long as a handshake may take.
template <class Pred>
bool ControlWait(PerCpu& self, platform::AtomicRef<uint32_t> word, Pred pred) {
  if (pred(word.Load(std::memory_order_acquire))) return true;
  return ControlWait(self, word, pred, HandshakeDeadline(*self.kernel));
}

bool WaitSync(PerCpu& self, CpuNumber cpu, SyncState below, TraceEvent begin, TraceEvent end) {
  if (begin != TraceEvent::kNone) platform::Trace(begin, Traced(cpu), 0);
  const bool ok = ControlWait(self, SyncWord(*self.kernel, cpu), [below](uint32_t value) {
    return value > static_cast<uint32_t>(below) || value == 0;
  });
  if (end != TraceEvent::kNone) platform::Trace(end, Traced(cpu), 0);
  return ok;
}

bool IsDead(uint32_t sync) { return sync == static_cast<uint32_t>(SyncState::kDead); }
bool IsSet(uint32_t word) { return word != 0; }

// It looks when it is idle: lets it come there, and wakes it.
Error CancelOnline(PerCpu& self, CpuNumber cpu) {
  platform::AtomicRef<uint32_t>(self.kernel->slot(cpu).cpuhp_target)
      .Exchange(static_cast<uint32_t>(CpuhpState::kOnline), std::memory_order_seq_cst);
  SendIpi(self, cpu, Vector(abi::kWakeVector));
  return Error::kNone;
}

// The AP is on its way down by itself: it undoes its own sections first, and is dead then.
void WaitDead(PerCpu& self, CpuNumber cpu) {
  if (!ControlWait(self, SyncWord(*self.kernel, cpu), IsDead)) TraceTimeout(*self.kernel, cpu);
}

}  // namespace

void InitPerCpu(Kernel& kernel, PerCpu& area, CpuNumber cpu) {
  const uint64_t base = reinterpret_cast<uint64_t>(&area);
  const uint64_t ring = cpu == kBootCpu ? kernel.params->boot_ring_gpa : base + kPerCpuRingOffset;
  const uint32_t records =
      cpu == kBootCpu ? kernel.params->boot_ring_records : kernel.params->percpu_ring_records;
  // A CPU that is brought up again writes on behind what it wrote before.
  if (area.header.ring_begin != ring) area.header.ring_cursor = ring;
  area.header.ring_begin = ring;
  area.header.ring_end = ring + records * sizeof(abi::TraceRecord);
  area.header.self = base;
  area.kernel = &kernel;
  area.slot = &kernel.slot(cpu);
  area.cpu = cpu;
  area.slot->apic_id = kernel.entry(cpu).apic_id;
}

Error KickAp(PerCpu& self, CpuNumber cpu) {
  Kernel& kernel = *self.kernel;
  const SyncState from = SyncStateOf(kernel, cpu);
  if (!SyncTransition(kernel, cpu, from, SyncState::kKicked)) return Error::kCancelled;
  if (kernel.kick_means != sequence::Means::kEach) return Error::kNone;
  // Only one that never ran, or has said that it is parked, can be stopped by an INIT unharmed.
  if (from == SyncState::kDead) {
    KickOps(self).Kick(cpu);
  } else {
    KickOps(self).Remind(cpu);
  }
  return Error::kNone;
}

Error CancelAp(PerCpu& self, CpuNumber cpu) {
  Kernel& kernel = *self.kernel;
  // The AP may move on between the look and the exchange; at most through three states.
  for (uint32_t tries = 0; tries < 4; ++tries) {
    const SyncState state = SyncStateOf(kernel, cpu);
    if (state == SyncState::kDead || state == SyncState::kShouldDie) return Error::kNone;
    if (!SyncTransition(kernel, cpu, state, SyncState::kShouldDie)) continue;
    if (state == SyncState::kOnline) return CancelOnline(self, cpu);
    break;
  }
  WithdrawTscCheck(kernel, cpu);
  NotifyCpu(self, cpu);
  return Error::kNone;
}

Error WaitAlive(PerCpu& self, CpuNumber cpu) {
  if (WaitSync(self, cpu, SyncState::kShouldDie, TraceEvent::kWaitAliveBegin,
               TraceEvent::kWaitAliveEnd)) {
    return Error::kNone;
  }
  TraceTimeout(*self.kernel, cpu);
  return Error::kTimeoutAlive;
}

Error WaitStartingDone(PerCpu& self, CpuNumber cpu) {
  if (WaitSync(self, cpu, SyncState::kShouldOnline, TraceEvent::kNone, TraceEvent::kNone)) {
    if (SyncStateOf(*self.kernel, cpu) == SyncState::kOnline) return Error::kNone;
    WaitDead(self, cpu);
    return Error::kStepFailed;
  }
  TraceTimeout(*self.kernel, cpu);
  return Error::kTimeoutOnline;
}

void RingBeforeKick(Kernel& kernel) {
  if (kernel.params->doorbell != 0) platform::Doorbell(abi::Doorbell::kBeforeKick);
}

namespace {

// What sequence::RunStrategy asks of the control CPU.
class SmpbootOps : public BootPasses {
 public:
  using BootPasses::BootPasses;

  void BringTo(CpuNumber cpu, Goal goal) {
    if (goal == Goal::kKicked) return PrepareKick(cpu);
    SetTarget(cpu, goal == Goal::kAlive ? CpuhpState::kApOnlineIdle : CpuhpState::kOnline);
    if (!Reach(cpu, CpuhpState::kWaitInit) || !Release(cpu)) return;
    GetUpcomingReady();
    if (goal == Goal::kOnline && Reach(cpu, CpuhpState::kBringupCpu)) WaitOnline(cpu);
  }

  void PrepareKick(CpuNumber cpu) {
    if (own_) {
      // The CPU is down: nobody else looks at these yet.
      kernel_.slot(cpu).on_its_own = 1;
      kernel_.slot(cpu).cpuhp_target = static_cast<uint32_t>(CpuhpState::kOnline);
    }
    const Error error = CpuhpUp(self_, cpu, Section::kPrepare, CpuhpState::kKickAp);
    if (error != Error::kNone && own_) CountOut();
  }

  void Upcoming(CpuNumber cpu) { kernel_.upcoming = cpu; }

  // Until it has done its last steps, or is on its way down.
  bool AwaitOnline(CpuNumber cpu, platform::Deadline deadline) {
    const auto online = [this, cpu](uint32_t own) {
      const bool up = SyncStateOf(kernel_, cpu) == SyncState::kOnline;
      return !up || own == static_cast<uint32_t>(CpuhpState::kOnline);
    };
    platform::AtomicRef<uint32_t> state(kernel_.slot(cpu).cpuhp_state);
    return ControlWait(self_, state, online, deadline);
  }

  // One more try for a CPU that has failed. False: not made, since the first one is not over.
  bool Retry(CpuNumber cpu) {
    abi::CpuSlot& slot = kernel_.slot(cpu);
    if (SyncStateOf(kernel_, cpu) == SyncState::kOnline) {
      // It may have done its last steps by now.
      if (CpuhpProgress(kernel_, cpu, Section::kOnline) == CpuhpState::kOnline) slot.error = 0;
      return false;
    }
    if (TreeKickUnderWay(kernel_, cpu)) return false;
    platform::Trace(TraceEvent::kRetry, Traced(cpu), slot.error);
    slot.error = 0;
    slot.parked = 0;
    slot.on_its_own = slot.tree_rank = 0;
    BringTo(cpu, Goal::kOnline);
    if (ParkedMeanwhile(kernel_, cpu, static_cast<Error>(slot.error))) {
      slot.error = slot.parked = 0;
      BringTo(cpu, Goal::kOnline);
    }
    return true;
  }

  // The last one to arrive says so; nobody else does.
  void WaitAllOnline(Scope) {
    const auto wait = [this](uint32_t before) {
      const auto all = [](uint32_t value) { return value == 0; };
      return ControlWait(self_, kernel_.remaining.Ref(), all) ||
             kernel_.remaining.Load(std::memory_order_seq_cst) != before;
    };
    if (!AwaitArrivals(wait)) GiveUpOnTheMissing();
  }

 private:
  bool Reach(CpuNumber cpu, CpuhpState target) {
    return CpuhpProgress(kernel_, cpu, Section::kPrepare) >= target ||
           CpuhpUp(self_, cpu, Section::kPrepare, target) == Error::kNone;
  }

  // Lets an AP go that is alive. False if it is lost.
  bool Release(CpuNumber cpu) {
    const SyncState state = SyncStateOf(kernel_, cpu);
    if (state > SyncState::kAlive) return true;  // by an earlier pass
    platform::Trace(TraceEvent::kRelease, Traced(cpu), 0);
    if (state == SyncState::kAlive &&
        SyncTransition(kernel_, cpu, SyncState::kAlive, SyncState::kShouldOnline)) {
      NotifyCpu(self_, cpu);
      return true;
    }
    if (SyncStateOf(kernel_, cpu) == SyncState::kShouldDie) WaitDead(self_, cpu);
    kernel_.slot(cpu).error = static_cast<uint32_t>(Error::kCancelled);
    CpuhpDown(self_, cpu, Section::kPrepare);
    return false;
  }

  // While the CPU that was just let go is busy, the next one, as far up as the last pass took it,
  // is taken as far as it can go without being let go, and woken: an AP that is let go while it
  // halts comes late by a whole wake-up. It spins for a moment, and finds itself let go.
  void GetUpcomingReady() {
    const CpuNumber next = kernel_.upcoming;
    kernel_.upcoming = kBootCpu;
    if (next == kBootCpu) return;
    const SyncState state = SyncStateOf(kernel_, next);
    if (state < SyncState::kAlive) return;
    NotifyCpu(self_, next);
    // It is alive: does not wait; a failure is in the slot.
    if (state == SyncState::kAlive) (void)Reach(next, CpuhpState::kWaitInit);
  }

  void SetTarget(CpuNumber cpu, CpuhpState target) {
    platform::AtomicRef<uint32_t> word(kernel_.slot(cpu).cpuhp_target);
    if (word.Load(std::memory_order_relaxed) == static_cast<uint32_t>(target)) return;
    word.Exchange(static_cast<uint32_t>(target), std::memory_order_seq_cst);
    NotifyCpu(self_, cpu);
  }

  void WaitOnline(CpuNumber cpu) {
    if (!AwaitOnline(cpu, HandshakeDeadline(kernel_))) {
      TraceTimeout(kernel_, cpu);
      kernel_.slot(cpu).error = static_cast<uint32_t>(Error::kTimeoutOnline);
    } else if (SyncStateOf(kernel_, cpu) != SyncState::kOnline) {
      WaitDead(self_, cpu);
      CpuhpDown(self_, cpu, Section::kPrepare);
    }
  }

  void GiveUpOnTheMissing() {
    for (uint32_t i = 0; i < kernel_.params->order_count; ++i) {
      const CpuNumber cpu(kernel_.order[i]);
      abi::CpuSlot& slot = kernel_.slot(cpu);
      if (slot.error != 0 || CpuhpProgress(kernel_, cpu, Section::kOnline) == CpuhpState::kOnline)
        continue;
      const Error late = LateBecause(kernel_, cpu);
      TraceTimeout(kernel_, cpu);
      slot.error = static_cast<uint32_t>(late);
      CpuhpDown(self_, cpu, Section::kPrepare);
    }
  }
};

// An AP that came up on its own, or that the host waited for, has undone what it did itself. The
// PREPARE section is the control CPU's to undo.
void UndoWhatFailed(PerCpu& self) {
  Kernel& kernel = *self.kernel;
  for (uint32_t i = 0; i < kernel.params->order_count; ++i) {
    const CpuNumber cpu(kernel.order[i]);
    const auto error = static_cast<Error>(kernel.slot(cpu).error);
    if (error == Error::kNone) continue;
    if (CpuhpProgress(kernel, cpu, Section::kPrepare) == CpuhpState::kOffline) continue;
    if (error == Error::kStepFailed) WaitDead(self, cpu);
    const SyncState state = SyncStateOf(kernel, cpu);
    const bool down = state == SyncState::kDead || state == SyncState::kShouldDie;
    if (down) CpuhpDown(self, cpu, Section::kPrepare);  // else it is late, and may come yet
  }
}

}  // namespace

void BringUpSecondaryCpus(PerCpu& self) {
  Kernel& kernel = *self.kernel;
  platform::Trace(TraceEvent::kSmpbootBegin, 0, 0);
  if (kernel.strategy.passes[0].means == sequence::Means::kTree) PlantTree(kernel);
  SmpbootOps ops(self, kernel.strategy.ApsRunOnTheirOwn());
  sequence::RunStrategy(ops, kernel.strategy, kernel.order, kernel.params->order_count);
  UndoWhatFailed(self);
  if (kernel.knobs().cache_setup == abi::CacheSetup::kRendezvous)
    CallAll(self, CallFunction::kCacheSetup);
  platform::Trace(TraceEvent::kSmpbootEnd, 0, kernel.online_count.Load(std::memory_order_seq_cst));
}

void RetryFailedCpus(PerCpu& self) {
  Kernel& kernel = *self.kernel;
  kernel.kick_means = sequence::Means::kEach;
  SmpbootOps ops(self, /*own=*/false);
  // One bound for all: whoever is late sees meanwhile that it was given up, and parks.
  const platform::Deadline late = HandshakeDeadline(kernel);
  bool any = false;
  const bool broadcast = kernel.strategy.id == sequence::StrategyId::kBroadcast;
  for (uint32_t i = 0; i < kernel.params->order_count; ++i) {
    const CpuNumber cpu(kernel.order[i]);
    if (kernel.slot(cpu).error == 0) continue;
    if (SyncStateOf(kernel, cpu) == SyncState::kOnline) (void)ops.AwaitOnline(cpu, late);
    if (SyncStateOf(kernel, cpu) == SyncState::kShouldDie)
      (void)ControlWait(self, SyncWord(kernel, cpu), IsDead, late);
    // A broadcast has started it too, though it was not kicked.
    if (SyncStateOf(kernel, cpu) == SyncState::kDead && broadcast)
      (void)ControlWait(self, platform::AtomicRef<uint32_t>(kernel.slot(cpu).parked), IsSet, late);
    any = ops.Retry(cpu) || any;
  }
  if (any && kernel.knobs().cache_setup == abi::CacheSetup::kRendezvous)
    CallAll(self, CallFunction::kCacheSetup);
}

void LetHostBringUp(PerCpu& self) {
  Kernel& kernel = *self.kernel;
  const bool own = kernel.strategy.ApsRunOnTheirOwn();
  for (uint32_t i = 0; i < kernel.params->order_count; ++i) {
    const CpuNumber cpu(kernel.order[i]);
    kernel.slot(cpu).on_its_own = own ? 1 : 0;
    kernel.slot(cpu).cpuhp_target = static_cast<uint32_t>(CpuhpState::kOnline);
    if (CpuhpUp(self, cpu, Section::kPrepare, CpuhpState::kTimersPrepare) != Error::kNone) continue;
    kernel.remaining.FetchAdd(1, std::memory_order_seq_cst);
  }
  platform::Doorbell(abi::Doorbell::kReady);
  // The VMM's own bound on every handshake makes sure that it comes to an end.
  ControlWait(self, platform::AtomicRef<uint32_t>(kernel.result->host_sequence_done), IsSet,
              platform::NoDeadline());
  UndoWhatFailed(self);
  if (kernel.knobs().cache_setup == abi::CacheSetup::kRendezvous)
    CallAll(self, CallFunction::kCacheSetup);
}

}  // namespace sipi
