// The target's side of INIT and SIPI, with the profile's latencies: as vmm/vcpu/user_vcpu.cc has it
// on KVM.
#include <algorithm>

#include "guest/platform/sim/machine.h"

namespace sipi::sim {

using abi::Charge;
using abi::TraceEvent;

// The CPU takes nothing before `until_ns`; what is sent to it waits in its mailbox.
void Machine::HoldCpu(Cpu& cpu, uint64_t until_ns) {
  cpu.state = CpuState::kInLatency;
  cpu.phase = LatencyPhase::kHeld;
  queue_.Set(ResumeSlot(cpu), until_ns);
}

void Machine::TakeStartup(Cpu& cpu) {
  if (cpu.state == CpuState::kInLatency) return;  // it looks again when that is over
  using Kind = apic::StartupAction::Kind;
  const apic::StartupAction action = cpu.startup.Take();
  if (action.kind == Kind::kNone) return;
  cpu.starting = action.kind != Kind::kInit;
  cpu.start_vector = action.vector;
  if (action.kind == Kind::kStart) return BeginStart(cpu);
  TakeInit(cpu);
}

void Machine::TakeInit(Cpu& cpu) {
  const auto track = static_cast<int32_t>(cpu.number);
  Record(track, now_ns_, TraceEvent::kInitDelivered);
  ++stats_.inits_taken;
  cpu.starts_since_init = 0;
  cpu.hung = false;
  cpu.init_lost = false;
  // Whatever it did, it does no more.
  Unlink(cpu);
  if (chaotic()) DrainStores(cpu, 0);
  if (limited()) ForgetCore(cpu);
  if (by_turns()) LoseTurn(cpu);
  queue_.Cancel(ResumeSlot(cpu));
  cpu.apic.Init();
  Publish(cpu);
  queue_.Cancel(TimerSlot(cpu));
  cpu.irqs = false;
  cpu.attention = false;
  cpu.nmi = false;
  cpu.woken = false;
  cpu.now_ns = now_ns_;
  cpu.state = CpuState::kWaitForSipi;
  if (cpu.number == 0) {
    ended_ = true;
    end_ = {.kind = EndKind::kFault,
            .cpu = CpuNumber(0),
            .code = 0,
            .text =
                "INIT reached CPU 0, the boot CPU: it restarts at F000:FFF0, and this machine "
                "has no firmware there"};
    return;
  }
  if (!Delay(cpu, LatencyPhase::kInit,
             Draw(cpu, options_.charges[static_cast<size_t>(Charge::kInit)]))) {
    LatencyIsOver(cpu);
  }
}

// SIPI taken.
void Machine::BeginStart(Cpu& cpu) {
  Record(static_cast<int32_t>(cpu.number), now_ns_, TraceEvent::kSipiDelivered,
         cpu.start_vector.value);
  ++stats_.startups_taken;
  if (chaotic()) CheckStart(cpu);
  if (ended_) return;
  constexpr uint64_t kNsPerMs = 1'000'000;
  const bool late = fault_.kind == abi::Fault::kLate && fault_.cpu == cpu.number && !cpu.was_late;
  cpu.was_late = cpu.was_late || late;
  if (chaotic() && Strikes(options_.chaos.late_ap)) {
    cpu.harmed = true;
    const uint64_t timeout_ns = params().knobs.handshake_timeout_ms * kNsPerMs;
    // One in four comes about when it is given up: that is when things go wrong.
    constexpr uint64_t kAboutNs = 200'000;
    const bool about = chaos_random_.Below(4) == 0;
    const uint64_t late_ns = about ? timeout_ns + chaos_random_.Below(kAboutNs)
                                   : 1 + chaos_random_.Below(timeout_ns * 3 / 2);
    if (Delay(cpu, LatencyPhase::kLate, late_ns)) return;
  }
  if (!late || !Delay(cpu, LatencyPhase::kLate, fault_.value * kNsPerMs)) BeginStartLatency(cpu);
}

void Machine::BeginStartLatency(Cpu& cpu) {
  const uint64_t ns = Draw(cpu, options_.charges[static_cast<size_t>(Charge::kStartup)]);
  if (!Delay(cpu, LatencyPhase::kStartup, ns)) LatencyIsOver(cpu);
}

// Has LatencyIsOver called after `ns`; false, and only the phase is noted, if that is none.
bool Machine::Delay(Cpu& cpu, LatencyPhase phase, uint64_t ns) {
  cpu.phase = phase;
  cpu.latency_ns = ns;
  if (ns == 0) return false;
  cpu.state = CpuState::kInLatency;
  queue_.Set(ResumeSlot(cpu), now_ns_ + ns);
  if (phase == LatencyPhase::kInit || phase == LatencyPhase::kStartup) {
    const Charge charge = phase == LatencyPhase::kInit ? Charge::kInit : Charge::kStartup;
    Record(static_cast<int32_t>(cpu.number), now_ns_, TraceEvent::kImposedBegin,
           static_cast<uint32_t>(charge));
    ++stats_.imposed_sleeps;
    stats_.imposed_ns += ns;
  }
  return true;
}

void Machine::LatencyIsOver(Cpu& cpu) {
  const LatencyPhase phase = cpu.phase;
  const bool imposed = phase == LatencyPhase::kInit || phase == LatencyPhase::kStartup;
  if (imposed && cpu.latency_ns != 0) {
    const Charge charge = phase == LatencyPhase::kInit ? Charge::kInit : Charge::kStartup;
    Record(static_cast<int32_t>(cpu.number), now_ns_, TraceEvent::kImposedEnd,
           static_cast<uint32_t>(charge));
  }
  cpu.state = CpuState::kWaitForSipi;
  if (phase == LatencyPhase::kLate) return BeginStartLatency(cpu);
  if (phase == LatencyPhase::kInit && cpu.starting) return BeginStart(cpu);
  // An INIT that came meanwhile stops a CPU that is about to start.
  const bool init = cpu.startup.Peek().Has(apic::StartupWord::kInitPending);
  if (phase == LatencyPhase::kStartup && !init) {
    cpu.starting = false;
    return Launch(cpu);
  }
  TakeStartup(cpu);
}

}  // namespace sipi::sim
