// Messages between the CPUs of the fuzzed machine, and what is checked after every operation.
#include <algorithm>

#include "tests/fuzz/invariants.h"
#include "tests/fuzz/machine.h"

namespace sipi::apic::fuzz {

void Machine::Apply(uint32_t cpu, const WriteEffect& effect) {
  using Kind = WriteEffect::Kind;
  finding_.Check(!effect.fault || effect.kind == Kind::kNone, "a fault has an effect");
  switch (effect.kind) {
    case Kind::kNone:
    case Kind::kEoi:
      return;
    case Kind::kIpi:
      return Route(cpu, effect.icr);
    case Kind::kSelfIpi:
      finding_.Check(effect.icr.shorthand == Shorthand::kSelf, "a self IPI that is none");
      finding_.Check(Apic(cpu).Pending(effect.icr.vector) || !Apic(cpu).software_enabled() ||
                         effect.icr.vector.value < 16,
                     "a self IPI is not in IRR");
      return;
    case Kind::kPriority:
      return Publish(cpu);
    case Kind::kRouting:
      Publish(cpu);
      return RefreshTimer(cpu);
    case Kind::kTimer:
      return RefreshTimer(cpu);
    case Kind::kModeChange:
      Publish(cpu);
      // The target alone sets the flag, while it runs; a CPU that waits for a SIPI does not.
      if (!cpus_[cpu]->startup.WaitsForSipi()) cpus_[cpu]->startup.SetBsp(Apic(cpu).bsp());
      return RefreshTimer(cpu);
  }
}

void Machine::Route(uint32_t sender, const Icr& icr) {
  std::vector<uint32_t> targets;
  table_->ForEachTarget(icr, CpuNumber(sender),
                        [&](CpuNumber cpu) { targets.push_back(cpu.value); });
  std::vector<uint32_t> expected;
  for (uint32_t cpu = 0; cpu < cpus_.size(); ++cpu) {
    if (MustReach(cpu, icr, &Apic(sender))) expected.push_back(cpu);
  }
  std::sort(targets.begin(), targets.end());
  if (icr.mode == DeliveryMode::kLowestPriority) {
    finding_.Check(targets.size() == std::min<size_t>(expected.size(), 1),
                   "lowest priority: one of the candidates");
    for (const uint32_t cpu : targets) {
      finding_.Check(std::find(expected.begin(), expected.end(), cpu) != expected.end(),
                     "lowest priority: not a candidate");
      for (const uint32_t other : expected) {
        finding_.Check(Apic(cpu).tpr() <= Apic(other).tpr(), "lowest priority: not the lowest");
      }
    }
  } else {
    finding_.Check(targets == expected, "the message reaches other CPUs than it must");
  }
  const bool to_sender = std::find(targets.begin(), targets.end(), sender) != targets.end();
  finding_.Check(icr.shorthand != Shorthand::kAllExcludingSelf || !to_sender,
                 "all but self hit the sender");
  for (const uint32_t cpu : targets) Deliver(cpu, icr, false);
}

void Machine::SendFromDevice(ByteReader& input) {
  const uint32_t low = input.U32();
  const Icr icr = Icr::FromLow(low & 0xcfff, input.U8());  // a device has no shorthands
  std::vector<uint32_t> targets;
  table_->ForEachDeviceTarget(icr, [&](CpuNumber cpu) { targets.push_back(cpu.value); });
  for (uint32_t cpu = 0; cpu < cpus_.size(); ++cpu) {
    const bool hit = std::find(targets.begin(), targets.end(), cpu) != targets.end();
    const bool must = MustReach(cpu, icr, nullptr);
    finding_.Check(icr.mode == DeliveryMode::kLowestPriority ? must || !hit : must == hit,
                   "the device's message reaches other CPUs than it must");
  }
  for (const uint32_t cpu : targets) Deliver(cpu, icr, icr.level_triggered);
}

void Machine::Deliver(uint32_t target, const Icr& icr, bool level) {
  LocalApic& apic = Apic(target);
  switch (icr.mode) {
    case DeliveryMode::kFixed:
    case DeliveryMode::kLowestPriority: {
      const bool was_pending = apic.Pending(icr.vector);
      const bool accepted = apic.Accept(icr.vector, level);
      finding_.Check(accepted == (!was_pending && icr.vector.value >= 16),
                     "an enabled APIC accepts every new legal vector");
      finding_.Check(icr.vector.value < 16 || apic.LevelTriggered(icr.vector) == level,
                     "TMR is not the trigger mode of the last acceptance");
      return;
    }
    case DeliveryMode::kInit:
      return Post(target, 1, Vector());
    case DeliveryMode::kStartUp:
      return Post(target, 2, icr.vector);
    default:
      return;
  }
}

void Machine::Publish(uint32_t cpu) { table_->Publish(CpuNumber(cpu), Apic(cpu).Routing()); }

void Machine::RefreshTimer(uint32_t cpu) {
  cpus_[cpu]->deadline_ns = Apic(cpu).NextDeadlineNs(now_);
}

void Machine::CheckEverything() {
  for (uint32_t cpu = 0; cpu < cpus_.size(); ++cpu) {
    CheckRegisters(Apic(cpu), config_, now_, finding_);
    CheckXApicId(Apic(cpu), cpus_[cpu]->written_id, now_, finding_);
    CheckTimer(Apic(cpu), now_, cpus_[cpu]->deadline_ns, finding_);
    CheckStartupWord(cpus_[cpu]->startup.Peek(), finding_);
    finding_.Check(table_->State(CpuNumber(cpu)) == Apic(cpu).Routing(),
                   "the routing word changed and no effect said so");
  }
}

}  // namespace sipi::apic::fuzz
