// The interrupt fabric: register accesses of the local APICs, messages between them, timers.
#include <algorithm>

#include "guest/abi/startup_fault.h"
#include "guest/platform/sim/machine.h"

namespace sipi::sim {

using abi::TraceEvent;
using apic::DeliveryMode;
using apic::Reg;

uint32_t Machine::ReadApic(Cpu& cpu, Reg reg) {
  const bool x2apic = cpu.apic.mode() == apic::ApicMode::kX2Apic;
  Spend(cpu, x2apic ? costs().msr_ns : costs().mmio_ns);
  Sync(cpu);
  if (!x2apic) return cpu.apic.ReadMmio(static_cast<uint32_t>(reg), ApicTime(cpu));
  const apic::ReadResult result = cpu.apic.ReadMsr(apic::X2ApicMsr(reg), ApicTime(cpu));
  if (result.fault) Exception(cpu, 13);
  return static_cast<uint32_t>(result.value);
}

void Machine::WriteApic(Cpu& cpu, Reg reg, uint32_t value) {
  const bool x2apic = cpu.apic.mode() == apic::ApicMode::kX2Apic;
  Spend(cpu, x2apic ? costs().msr_ns : costs().mmio_ns);
  Sync(cpu);
  Apply(cpu, x2apic ? cpu.apic.WriteMsr(apic::X2ApicMsr(reg), value, ApicTime(cpu))
                    : cpu.apic.WriteMmio(static_cast<uint32_t>(reg), value, ApicTime(cpu)));
}

void Machine::WriteIcr(Cpu& cpu, uint32_t low, uint32_t dest) {
  if (chaotic() && !by_turns()) MayLinger(cpu, nullptr);
  if (cpu.apic.mode() == apic::ApicMode::kX2Apic) {
    Spend(cpu, costs().msr_ns);
    Sync(cpu);
    return Apply(cpu, cpu.apic.WriteMsr(apic::X2ApicMsr(Reg::kIcrLow), uint64_t{dest} << 32 | low,
                                        ApicTime(cpu)));
  }
  // An interrupt between the two halves could send an IPI of its own and change the upper half.
  const bool irqs = cpu.irqs;
  cpu.irqs = false;
  if ((low >> 18 & 3) == 0) WriteApic(cpu, Reg::kIcrHigh, dest << 24);
  WriteApic(cpu, Reg::kIcrLow, low);
  cpu.irqs = irqs;
}

void Machine::WriteTscDeadline(Cpu& cpu, uint64_t ticks) {
  Spend(cpu, costs().msr_ns);
  Sync(cpu);
  Apply(cpu, cpu.apic.WriteTscDeadline(ticks, ApicTime(cpu)));
}

void Machine::WriteApicBase(Cpu& cpu, uint64_t value) {
  Spend(cpu, costs().msr_ns);
  Sync(cpu);
  Apply(cpu, cpu.apic.WriteApicBase(value));
}

void Machine::Apply(Cpu& cpu, const apic::WriteEffect& effect) {
  using Kind = apic::WriteEffect::Kind;
  if (effect.fault) Exception(cpu, 13);
  switch (effect.kind) {
    case Kind::kNone:
    case Kind::kEoi:  // there is no I/O APIC to tell
      break;
    case Kind::kIpi:
      Send(cpu, effect.icr);
      break;
    case Kind::kSelfIpi:
      ++stats_.ipis;
      break;
    case Kind::kPriority:
    case Kind::kRouting:
    case Kind::kModeChange:
      Publish(cpu);
      break;
    case Kind::kTimer:
      RefreshTimer(cpu);
      break;
  }
  if (!cpu.attention && cpu.apic.HighestDeliverable()) cpu.attention = true;
}

void Machine::Send(Cpu& sender, const apic::Icr& icr) {
  bool reached = false;
  routing_.ForEachTarget(icr, CpuNumber(sender.number), [&](CpuNumber target) {
    reached = true;
    Post(sender, target.value, icr);
  });
  if (!reached) ++stats_.undeliverable;
}

// Counts the message, loses it if a fault says so, and has it arrive after the latency.
void Machine::Post(Cpu& sender, uint32_t target, const apic::Icr& icr) {
  const auto track = static_cast<int32_t>(target);
  uint32_t index = 0;
  if (chaotic() && LosesStartup(target, icr.mode)) return;
  if (options_.chaos.calls_need_life) CheckCall(sender, target, icr);
  switch (icr.mode) {
    case DeliveryMode::kInit:
      ++stats_.inits_sent;
      if (!DropsInit(target)) break;
      ++stats_.startup_dropped;
      return Record(track, now_ns_, TraceEvent::kInitDropped);
    case DeliveryMode::kStartUp:
      ++stats_.sipis_sent;
      if (!DropsSipi(target, &index)) break;
      ++stats_.startup_dropped;
      return Record(track, now_ns_, TraceEvent::kSipiDropped, index);
    case DeliveryMode::kFixed:
    case DeliveryMode::kLowestPriority:
    case DeliveryMode::kNmi:
      ++stats_.ipis;
      break;
    default:  // there is no system management mode here
      ++stats_.undeliverable;
      return;
  }
  uint64_t arrival_ns = now_ns_ + Draw(sender, costs().ipi);
  if (chaotic()) {
    arrival_ns = ArrivalNs(cpus_[target], icr.mode, arrival_ns);
    const bool again = icr.mode != DeliveryMode::kInit && Strikes(options_.chaos.duplicated_ipi);
    if (again) Enqueue({target, icr.mode, icr.vector}, arrival_ns + random_.Below(100'000));
  }
  Enqueue({target, icr.mode, icr.vector}, arrival_ns);
}

void Machine::Enqueue(const Message& message, uint64_t arrival_ns) {
  if (free_messages_.empty()) {
    free_messages_.push_back(static_cast<uint32_t>(messages_.size()));
    messages_.push_back({});
    queue_.AddSlot();
  }
  const uint32_t index = free_messages_.back();
  free_messages_.pop_back();
  messages_[index] = message;
  queue_.Set(FirstMessageSlot() + index, arrival_ns);
}

bool Machine::DropsInit(uint32_t target) {
  if (abi::Concerns(fault_, target)) faulted_sipis_ = 0;
  return abi::LosesInit(fault_, target);
}

bool Machine::DropsSipi(uint32_t target, uint32_t* index) {
  if (abi::Concerns(fault_, target)) *index = faulted_sipis_++;
  return abi::LosesSipi(fault_, target, *index);
}

void Machine::OnMessage(uint32_t slot) {
  const uint32_t index = slot - FirstMessageSlot();
  const Message message = messages_[index];
  free_messages_.push_back(index);
  Cpu& target = cpus_[message.target];
  switch (message.mode) {
    case DeliveryMode::kInit:
      target.startup.PostInit();
      return TakeStartup(target);
    case DeliveryMode::kStartUp:
      if (target.startup.PostSipi(message.vector)) return TakeStartup(target);
      ++stats_.sipis_ignored;
      return Record(static_cast<int32_t>(target.number), now_ns_, TraceEvent::kSipiIgnored,
                    message.vector.value);
    case DeliveryMode::kNmi:
      target.nmi = true;  // held by a CPU that waits for a SIPI (SDM vol 3C, 27.7.2)
      return Attention(target);
    default:
      target.apic.Accept(message.vector);
      return Attention(target);
  }
}

void Machine::OnTimer(Cpu& cpu) {
  const apic::Time now = {now_ns_,
                          TicksOf(now_ns_) + static_cast<uint64_t>(cpu.place.tsc_offset_ticks)};
  if (cpu.apic.Advance(now)) {
    ++stats_.timer_interrupts;
    Attention(cpu);
  }
  const std::optional<uint64_t> next = cpu.apic.NextDeadlineNs(now);
  if (next) queue_.Set(TimerSlot(cpu), std::max(*next, now_ns_ + 1));
}

void Machine::RefreshTimer(Cpu& cpu) {
  const std::optional<uint64_t> next = cpu.apic.NextDeadlineNs(ApicTime(cpu));
  if (!next) return queue_.Cancel(TimerSlot(cpu));
  uint64_t due_ns = std::max(*next, now_ns_);
  if (chaotic() && Strikes(options_.chaos.late_timer)) due_ns += chaos_random_.Below(1'000'000);
  queue_.Set(TimerSlot(cpu), due_ns);
}

}  // namespace sipi::sim
