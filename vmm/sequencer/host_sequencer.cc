#include "vmm/sequencer/host_sequencer.h"

#include <sys/prctl.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "guest/abi/cpuhp_state.h"
#include "guest/abi/layout.h"
#include "vmm/device/monotonic_clock.h"
#include "vmm/irqchip/futex.h"

namespace sipi {
namespace {

using abi::CpuhpState;
using abi::SyncState;
using abi::TraceEvent;
using sequence::Goal;
using sequence::Scope;

constexpr uint64_t kPollNs = 50'000;
constexpr uint64_t kNsPerUs = 1'000;
constexpr uint64_t kNsPerMs = 1'000'000;

uint16_t Traced(CpuNumber cpu) { return static_cast<uint16_t>(cpu.value); }

uint32_t Load(uint32_t& word) { return std::atomic_ref(word).load(std::memory_order_seq_cst); }
void Store(uint32_t& word, uint32_t value) {
  std::atomic_ref(word).store(value, std::memory_order_seq_cst);
}

uint32_t IcrLow(apic::DeliveryMode mode, Vector vector) {
  apic::Icr icr;
  icr.mode = mode;
  icr.vector = vector;
  return icr.Low();
}

}  // namespace

absl::Status HostSequencer::Run() {
  prctl(PR_SET_TIMERSLACK, 1ul);  // nanoseconds: the delays of a kick are microseconds
  if (Load(sequence_.result->veto) != 0) {
    const sequence::Strategy asked = sequence_.strategy;
    sequence_.strategy = sequence::MakeStrategy(sequence::StrategyId::kSerial);
    sequence_.strategy.reuse_calibration = asked.reuse_calibration;
  }
  released_.assign(sequence_.slots.size(), false);
  log_.Emit(TraceEvent::kSmpbootBegin);
  sequence::RunStrategy(*this, sequence_.strategy, sequence_.order.data(),
                        static_cast<uint32_t>(sequence_.order.size()));
  log_.Emit(TraceEvent::kSmpbootEnd, 0, CountOnline());
  if (stopped()) return absl::OkStatus();
  Store(sequence_.result->host_sequence_done, 1);
  Check(sender_.SendInterrupt(CpuNumber(0), Vector(abi::kWakeVector)));
  return status_;
}

void HostSequencer::Stop() {
  stop_.store(1, std::memory_order_release);
  FutexWake(stop_);
}

void HostSequencer::Check(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

SyncState HostSequencer::StateOf(CpuNumber cpu) {
  return static_cast<SyncState>(Load(slot(cpu).sync_state));
}

bool HostSequencer::Transition(CpuNumber cpu, SyncState from, SyncState to) {
  if (!abi::SyncTransitionAllowed(from, to)) {
    Check(absl::InternalError(absl::StrCat("host-driven bring-up: CPU ", cpu.value, " is ",
                                           abi::Name(from), ", from which it may not become ",
                                           abi::Name(to))));
    return false;
  }
  uint32_t expected = static_cast<uint32_t>(from);
  return std::atomic_ref(slot(cpu).sync_state)
      .compare_exchange_strong(expected, static_cast<uint32_t>(to), std::memory_order_seq_cst);
}

void HostSequencer::Notify(CpuNumber cpu) {
  if (Load(slot(cpu).sleeping) == 0) return;
  Check(sender_.SendInterrupt(cpu, Vector(abi::kWakeVector)));
}

void HostSequencer::DelayUs(uint32_t us) {
  const uint64_t until = MonotonicNs() + us * kNsPerUs;
  while (!stopped() && MonotonicNs() < until) FutexWait(stop_, 0, until);
}

template <class Done>
bool HostSequencer::Poll(Done done) {
  const uint64_t deadline = MonotonicNs() + sequence_.knobs.handshake_timeout_ms * kNsPerMs;
  while (!done()) {
    const uint64_t now = MonotonicNs();
    if (Failed() || now >= deadline) return false;
    FutexWait(stop_, 0, now + kPollNs);
  }
  return true;
}

void HostSequencer::PassBegin(uint32_t index) { log_.Emit(TraceEvent::kPassBegin, 0, index); }
void HostSequencer::PassEnd(uint32_t index) { log_.Emit(TraceEvent::kPassEnd, 0, index); }

bool HostSequencer::InScope(CpuNumber cpu, Scope scope) const {
  if (Failed() || cpu.value >= sequence_.slots.size()) return false;
  if (Load(sequence_.slots[cpu.value].error) != 0) return false;  // failed in a former pass
  if (scope == Scope::kAll) return true;
  return sequence_.is_primary[cpu.value] == (scope == Scope::kPrimaries);
}

void HostSequencer::PrepareKick(CpuNumber cpu) {
  const SyncState from = StateOf(cpu);
  if (from != SyncState::kKicked) Transition(cpu, from, SyncState::kKicked);
}

void HostSequencer::Kick(CpuNumber cpu) {
  log_.Emit(TraceEvent::kKickBegin, Traced(cpu));
  sequence::KickSequence(*this, sequence_.knobs.kick, cpu);
  log_.Emit(TraceEvent::kKickEnd, Traced(cpu));
}

void HostSequencer::KickBroadcast() {
  log_.Emit(TraceEvent::kKickBegin, abi::kAllTargets);
  sequence::KickSequence(*this, sequence_.knobs.kick, AllAps());
  log_.Emit(TraceEvent::kKickEnd, abi::kAllTargets);
}

// The host plays every rank, in the order of the rounds, which is that of the ranks: round k wakes
// the ranks from 2^k up.
void HostSequencer::KickTreeRoots(uint32_t /*count*/) {
  for (const uint32_t cpu : sequence_.order) {
    if (InScope(CpuNumber(cpu), Scope::kAll)) Kick(CpuNumber(cpu));
  }
}

void HostSequencer::SendInit(CpuNumber target) {
  log_.Emit(TraceEvent::kIpiSent, Traced(target), IcrLow(apic::DeliveryMode::kInit, Vector(0)));
  Check(sender_.SendInit(target));
}

void HostSequencer::SendStartup(CpuNumber target, uint32_t /*index*/) {
  const Vector vector(abi::kTrampolineVector);
  log_.Emit(TraceEvent::kIpiSent, Traced(target), IcrLow(apic::DeliveryMode::kStartUp, vector));
  Check(sender_.SendStartup(target, vector));
}

void HostSequencer::SendInit(AllAps) {
  log_.Emit(TraceEvent::kIpiSent, abi::kAllTargets, IcrLow(apic::DeliveryMode::kInit, Vector(0)));
  for (uint32_t cpu = 1; cpu < sequence_.slots.size(); ++cpu) {
    Check(sender_.SendInit(CpuNumber(cpu)));
  }
}

void HostSequencer::SendStartup(AllAps, uint32_t /*index*/) {
  const Vector vector(abi::kTrampolineVector);
  log_.Emit(TraceEvent::kIpiSent, abi::kAllTargets, IcrLow(apic::DeliveryMode::kStartUp, vector));
  for (uint32_t cpu = 1; cpu < sequence_.slots.size(); ++cpu) {
    Check(sender_.SendStartup(CpuNumber(cpu), vector));
  }
}

void HostSequencer::BringTo(CpuNumber cpu, Goal goal) {
  if (StateOf(cpu) == SyncState::kDead) {
    PrepareKick(cpu);
    Kick(cpu);
  }
  if (goal == Goal::kKicked || Failed()) return;
  if (!released_[cpu.value] && !WaitAliveAndRelease(cpu)) return;
  if (goal == Goal::kOnline) WaitOnline(cpu);
}

bool HostSequencer::WaitAliveAndRelease(CpuNumber cpu) {
  log_.Emit(TraceEvent::kWaitAliveBegin, Traced(cpu));
  const bool alive = Poll([&] { return StateOf(cpu) != SyncState::kKicked; });
  log_.Emit(TraceEvent::kWaitAliveEnd, Traced(cpu));
  if (!alive) {
    GiveUp(cpu);
    return false;
  }
  log_.Emit(TraceEvent::kRelease, Traced(cpu));
  if (!Transition(cpu, SyncState::kAlive, SyncState::kShouldOnline)) return false;
  released_[cpu.value] = true;
  Notify(cpu);
  return true;
}

bool HostSequencer::IsOnline(CpuNumber cpu) {
  return Load(slot(cpu).cpuhp_state) == static_cast<uint32_t>(CpuhpState::kOnline);
}

// A CPU that undid its own steps: it says so in its slot, and parks.
bool HostSequencer::IsDown(CpuNumber cpu) {
  const SyncState state = StateOf(cpu);
  return state == SyncState::kDead || state == SyncState::kShouldDie;
}

void HostSequencer::WaitOnline(CpuNumber cpu) {
  if (!Poll([&] { return IsOnline(cpu) || IsDown(cpu); })) GiveUp(cpu);
}

void HostSequencer::WaitAllOnline(Scope scope) {
  std::vector<CpuNumber> missing;
  for (const uint32_t cpu : sequence_.order) {
    if (InScope(CpuNumber(cpu), scope)) missing.emplace_back(cpu);
  }
  // The bound is one handshake's, begun anew whenever some AP arrives.
  size_t before = missing.size() + 1;
  while (!missing.empty() && missing.size() < before) {
    before = missing.size();
    Poll([&] {
      std::erase_if(missing, [&](CpuNumber cpu) { return IsOnline(cpu) || IsDown(cpu); });
      return missing.size() < before;
    });
  }
  for (const CpuNumber cpu : missing) GiveUp(cpu);
}

void HostSequencer::GiveUp(CpuNumber cpu) {
  if (Failed()) return;
  const SyncState state = StateOf(cpu);
  log_.Emit(TraceEvent::kTimeout, Traced(cpu), static_cast<uint32_t>(state));
  const abi::GuestError error = state == SyncState::kKicked ? abi::GuestError::kTimeoutAlive
                                                            : abi::GuestError::kTimeoutOnline;
  Store(slot(cpu).error, static_cast<uint32_t>(error));
  // The AP may move on between the look and the exchange; at most through three states.
  for (int tries = 0; tries < 4; ++tries) {
    const SyncState now = StateOf(cpu);
    if (now == SyncState::kDead || now == SyncState::kShouldDie) return;
    if (Transition(cpu, now, SyncState::kShouldDie)) break;
  }
  Notify(cpu);
}

uint32_t HostSequencer::CountOnline() {
  uint32_t online = 0;
  for (abi::CpuSlot& each : sequence_.slots) online += Load(each.online) != 0 ? 1u : 0u;
  return online;
}

}  // namespace sipi
