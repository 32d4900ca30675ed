#include "tests/fuzz/machine.h"

#include <algorithm>

#include "tests/fuzz/invariants.h"
#include "tests/fuzz/x2apic_table.h"

namespace sipi::apic::fuzz {
namespace {

// Byte 0: CPUs in bits 2:0, how their IDs lie in 4:3, timer clock in 6:5, in x2APIC mode from the
// start in 7.
ApicId IdOf(uint32_t cpu, uint8_t pattern) {
  constexpr std::array<uint32_t, 8> kOddOnes = {0, 254, 255, 256, 300, 44, 0xfffff, 7};
  switch (pattern) {
    case 0:
      return ApicId(cpu);  // dense: one cluster
    case 1:
      return ApicId(cpu * 9);  // sparse, over five clusters
    case 2:
      return ApicId(cpu * 16 + (cpu & 1));  // one or two in a cluster
    default:
      return ApicId(kOddOnes[cpu]);
  }
}

// Byte 1: what the processor has.
ApicConfig ConfigOf(uint8_t clock, uint8_t features) {
  constexpr std::array<uint64_t, 4> kBusHz = {1'000'000'000, 24'000'000, 300'000'000, 7};
  ApicConfig config;
  config.bus_hz = kBusHz[clock];
  config.tsc_hz = 3'000'000'000;
  config.has_x2apic = (features & 1) == 0;
  config.has_tsc_deadline = (features & 2) == 0;
  config.has_cmci = (features & 4) == 0;
  config.has_directed_eoi = (features & 8) != 0;
  config.has_lowest_priority_ipi = (features & 16) == 0;
  config.has_writable_xapic_id = (features & 32) != 0;
  return config;
}

}  // namespace

Machine::Machine(ByteReader& input, Finding& finding) : finding_(finding) {
  const uint8_t shape = input.U8();
  const uint8_t features = input.U8();
  config_ = ConfigOf(shape >> 5 & 3, features);
  std::vector<ApicId> ids;
  for (uint32_t cpu = 0; cpu < 1u + (shape & 7); ++cpu) {
    ids.push_back(IdOf(cpu, shape >> 3 & 3));
    cpus_.push_back(std::make_unique<Cpu>(ids.back(), cpu == 0, config_));
  }
  table_.emplace(ids);
  const bool x2apic = (shape & 0x80) != 0 && config_.has_x2apic;
  for (uint32_t cpu = 0; cpu < cpus_.size(); ++cpu) {
    Apic(cpu).Reset(cpu == 0, x2apic ? ApicMode::kX2Apic : ApicMode::kXApic);
    Publish(cpu);
  }
}

void Machine::Step(int step, ByteReader& input) {
  constexpr std::array<const char*, static_cast<size_t>(Operation::kCount)> kNames = {
      "store", "load", "wrmsr", "rdmsr", "IA32_APIC_BASE", "TSC deadline", "time", "device",
      "local", "take", "EOI",   "IPI",   "post",           "startup",      "CR8",  "restore"};
  const uint8_t operation = input.U8() % static_cast<uint8_t>(Operation::kCount);
  const uint32_t cpu = input.U8() % static_cast<uint32_t>(cpus_.size());
  finding_.At(step, kNames[operation]);
  Do(static_cast<Operation>(operation), cpu, input);
  CheckEverything();
}

void Machine::Do(Operation operation, uint32_t cpu, ByteReader& input) {
  switch (operation) {
    case Operation::kStoreMmio:
      return StoreMmio(cpu, input);
    case Operation::kLoadMmio: {
      const uint32_t offset = input.U16() & 0xfff;
      const uint32_t bytes = 1 + input.U8() % 8;
      const uint64_t value = Apic(cpu).LoadMmio(offset, bytes, now_);
      finding_.Check(bytes == 8 || value >> bytes * 8 == 0, "a load gave more than was asked for");
      return;
    }
    case Operation::kWriteMsr: {
      const uint32_t msr = kX2ApicMsrFirst + input.U8();
      return WriteMsr(cpu, msr, input.U64());
    }
    case Operation::kReadMsr:
      return ReadMsr(cpu, kX2ApicMsrFirst + input.U8());
    case Operation::kApicBase:
      return WriteApicBase(cpu, input.U16());
    case Operation::kTscDeadline: {
      const int32_t cycles = static_cast<int32_t>(input.U32());
      const uint64_t deadline = cycles == 0 ? 0 : now_.tsc + static_cast<uint64_t>(int64_t{cycles});
      const WriteEffect effect = Apic(cpu).WriteTscDeadline(deadline, now_);
      finding_.Check(effect.fault != config_.has_tsc_deadline, "TSC deadline: fault or feature");
      return Apply(cpu, effect);
    }
    case Operation::kTime:
      return PassTime(input.U32());
    case Operation::kDevice:
      return SendFromDevice(input);
    case Operation::kLocal:
      return RaiseLocal(cpu, input.U8() % kLvtEntryCount);
    case Operation::kTake:
      return TakeInterrupt(cpu, (input.U8() & 1) != 0);
    case Operation::kEoi:
      return EndOfInterrupt(cpu);
    case Operation::kIpi: {
      const uint32_t low = input.U32();
      return SendIpi(cpu, low, input.U32());
    }
    case Operation::kPost: {
      const uint8_t what = input.U8();
      return Post(cpu, what, Vector(input.U8()));
    }
    case Operation::kStartup:
      return TakeStartup(cpu);
    case Operation::kCr8:
      Apic(cpu).SetCr8(input.U8() & 15);
      return Publish(cpu);
    case Operation::kRestore:
      return Restore(cpu, input);
    case Operation::kCount:
      return;
  }
}

void Machine::StoreMmio(uint32_t cpu, ByteReader& input) {
  const uint32_t offset = input.U16() & 0xfff;
  const uint32_t bytes = 1 + input.U8() % 8;
  const uint64_t value = input.U64();
  const RegisterPage before = LocalApic(Apic(cpu)).ToPage(now_);
  const bool is_id = offset == static_cast<uint32_t>(Reg::kId) && bytes == 4;
  if (is_id && config_.has_writable_xapic_id && Apic(cpu).mode() == ApicMode::kXApic) {
    cpus_[cpu]->written_id = static_cast<uint8_t>(value >> 24);
  }
  const WriteEffect effect = Apic(cpu).StoreMmio(offset, bytes, value, now_);
  finding_.Check(!effect.fault, "a store faulted");
  if (Apic(cpu).mode() != ApicMode::kXApic) {
    finding_.Check(effect.kind == WriteEffect::Kind::kNone, "a store outside xAPIC mode counts");
    finding_.Check(LocalApic(Apic(cpu)).ToPage(now_) == before, "and changes a register");
  }
  Apply(cpu, effect);
}

void Machine::WriteMsr(uint32_t cpu, uint32_t msr, uint64_t value) {
  const X2ApicRule rule = X2ApicRuleOf(msr, config_);
  const bool legal =
      Apic(cpu).mode() == ApicMode::kX2Apic && rule.writable && (value & ~rule.may_be_one) == 0;
  const RegisterPage before = LocalApic(Apic(cpu)).ToPage(now_);
  const WriteEffect effect = Apic(cpu).WriteMsr(msr, value, now_);
  finding_.Check(effect.fault != legal, "WRMSR does not fault as table 11-6 says");
  if (effect.fault) {
    finding_.Check(LocalApic(Apic(cpu)).ToPage(now_) == before,
                   "a faulting WRMSR changed something");
  }
  if (effect.kind == WriteEffect::Kind::kIpi) {
    finding_.Check(effect.icr.X2Apic() == (value & ~uint64_t{kIcrDeliveryStatus}) || msr != 0x830,
                   "the command to send is not the one that was written");
  }
  Apply(cpu, effect);
}

void Machine::ReadMsr(uint32_t cpu, uint32_t msr) {
  const bool legal = Apic(cpu).mode() == ApicMode::kX2Apic && X2ApicRuleOf(msr, config_).readable;
  const ReadResult result = Apic(cpu).ReadMsr(msr, now_);
  finding_.Check(result.fault != legal, "RDMSR does not fault as table 11-6 says");
  finding_.Check(msr == 0x830 || result.value >> 32 == 0, "only the ICR is wider than 32 bits");
}

void Machine::WriteApicBase(uint32_t cpu, uint16_t bits) {
  const uint64_t before = Apic(cpu).ReadApicBase();
  const uint64_t value = kApicBaseGpa | (bits & 0xfff) | uint64_t{bits} >> 12 << 44;
  const WriteEffect effect = Apic(cpu).WriteApicBase(value);
  // 11.4.4 and figure 11-27.
  const bool enable = (value & kApicBaseEnable) != 0;
  const bool x2apic = (value & kApicBaseX2Apic) != 0;
  const bool was_enabled = (before & kApicBaseEnable) != 0;
  const bool was_x2apic = (before & kApicBaseX2Apic) != 0;
  const bool reserved = (value & 0x2ff) != 0 || value >> config_.phys_addr_bits != 0 ||
                        (x2apic && !config_.has_x2apic);
  const bool illegal = reserved || (x2apic && !enable) || (x2apic && !was_enabled) ||
                       (was_x2apic && enable && !x2apic);
  finding_.Check(effect.fault == illegal, "IA32_APIC_BASE does not fault as figure 11-27 says");
  finding_.Check(Apic(cpu).ReadApicBase() == (illegal ? before : value),
                 "IA32_APIC_BASE is not what was written, or not kept by a fault");
  if (!illegal && !enable) cpus_[cpu]->written_id.reset();  // 11.4.3: its state is lost
  Apply(cpu, effect);
}

void Machine::PassTime(uint32_t ns) {
  now_.ns += ns;
  now_.tsc += uint64_t{ns} * 3;
  for (uint32_t cpu = 0; cpu < cpus_.size(); ++cpu) {
    if (!cpus_[cpu]->deadline_ns || *cpus_[cpu]->deadline_ns > now_.ns) continue;
    (void)Apic(cpu).Advance(now_);
    RefreshTimer(cpu);
  }
}

void Machine::RaiseLocal(uint32_t cpu, uint8_t entry) {
  const RegisterPage before = LocalApic(Apic(cpu)).ToPage(now_);
  const LocalDelivery delivery = Apic(cpu).RaiseLocal(static_cast<LvtEntry>(entry));
  if (delivery == LocalDelivery::kFixed) {
    finding_.Check(Apic(cpu).software_enabled(), "a masked entry delivered");
    return;
  }
  const RegisterPage after = LocalApic(Apic(cpu)).ToPage(now_);
  // An illegal vector in the entry is an error, which may interrupt.
  for (uint32_t offset = 0x100; offset < 0x180; offset += 16) {
    finding_.Check(before.Get(offset) == after.Get(offset), "a local source changed ISR");
  }
}

void Machine::TakeInterrupt(uint32_t cpu, bool even_if_none) {
  const std::optional<Vector> next = Apic(cpu).HighestDeliverable();
  if (!next && !even_if_none) return;
  const bool was_in_service = Apic(cpu).InService(Apic(cpu).spurious_vector());
  const Vector vector = Apic(cpu).TakeInterrupt();
  if (next) {
    finding_.Check(vector == *next && Apic(cpu).InService(vector) && !Apic(cpu).Pending(vector),
                   "the interrupt taken is not in service");
    finding_.Check(Apic(cpu).Ppr() >> 4 >= vector.value >> 4, "PPR is below what is in service");
    return;
  }
  finding_.Check(vector == Apic(cpu).spurious_vector(), "not the spurious vector");
  finding_.Check(Apic(cpu).InService(vector) == was_in_service, "a spurious interrupt in service");
}

void Machine::EndOfInterrupt(uint32_t cpu) {
  LocalApic& apic = Apic(cpu);
  if (apic.mode() == ApicMode::kDisabled) return;
  std::optional<Vector> highest;
  for (uint32_t v = 0; v < 256; ++v) {
    if (apic.InService(Vector(static_cast<uint8_t>(v)))) highest = Vector(static_cast<uint8_t>(v));
  }
  const WriteEffect effect = apic.mode() == ApicMode::kX2Apic ? apic.WriteMsr(0x80b, 0, now_)
                                                              : apic.WriteMmio(0x0b0, 0, now_);
  finding_.Check(!effect.fault, "EOI faulted");
  finding_.Check((effect.kind == WriteEffect::Kind::kEoi) == highest.has_value(),
                 "EOI ended something that was not in service, or nothing");
  if (!highest) return;
  finding_.Check(effect.eoi_vector == *highest && !apic.InService(*highest),
                 "EOI did not end the highest in service");
  finding_.Check(!effect.eoi_level || apic.LevelTriggered(*highest), "broadcast of an edge's EOI");
}

void Machine::SendIpi(uint32_t cpu, uint32_t low, uint32_t dest) {
  LocalApic& apic = Apic(cpu);
  if (apic.mode() == ApicMode::kX2Apic) {
    return WriteMsr(cpu, 0x830, uint64_t{dest} << 32 | (low & 0xccfff));
  }
  Apply(cpu, apic.WriteMmio(0x310, dest << 24, now_));
  Apply(cpu, apic.WriteMmio(0x300, low, now_));
}

void Machine::Post(uint32_t cpu, uint8_t what, Vector vector) {
  StartupMailbox& mailbox = cpus_[cpu]->startup;
  if ((what & 1) != 0) {
    const StartupWord before = mailbox.Peek();
    const bool counted = mailbox.PostInit();
    CheckPost(before, mailbox.Peek(), counted, finding_);
    finding_.Check(mailbox.Peek().Has(StartupWord::kInitPending), "an INIT was dropped");
    finding_.Check(!mailbox.Peek().Has(StartupWord::kSipiPending), "a SIPI survived an INIT");
  }
  if ((what & 2) != 0) {
    const StartupWord before = mailbox.Peek();
    const bool counted = mailbox.PostSipi(vector);
    CheckPost(before, mailbox.Peek(), counted, finding_);
    const bool waits = before.Has(StartupWord::kInitPending)
                           ? !before.Has(StartupWord::kBsp)
                           : before.Has(StartupWord::kWaitForSipi);
    finding_.Check(counted == (waits && !before.Has(StartupWord::kSipiPending)),
                   "a SIPI counts only for a CPU that waits, and only the first");
  }
}

void Machine::TakeStartup(uint32_t cpu) {
  StartupMailbox& mailbox = cpus_[cpu]->startup;
  const StartupWord before = mailbox.Peek();
  const StartupAction action = mailbox.Take();
  CheckTake(before, mailbox.Peek(), action, finding_);
  using Kind = StartupAction::Kind;
  if (action.kind != Kind::kInit && action.kind != Kind::kInitThenStart) return;
  const uint64_t base = Apic(cpu).ReadApicBase();
  Apic(cpu).Init();
  finding_.Check(Apic(cpu).ReadApicBase() == base, "INIT changed IA32_APIC_BASE");
  finding_.Check(!Apic(cpu).software_enabled() && Apic(cpu).Ppr() == 0, "INIT left SVR or PPR");
  finding_.Check(!Apic(cpu).HighestDeliverable(), "INIT left an interrupt");
  Publish(cpu);
  RefreshTimer(cpu);
}

void Machine::Restore(uint32_t cpu, ByteReader& input) {
  RegisterPage page = Apic(cpu).ToPage(now_);
  const uint32_t offset = input.U16() % 0x400 & ~3u;
  page.Set(offset, input.U32());
  Apic(cpu).FromPage(page, now_);
  Publish(cpu);
  RefreshTimer(cpu);
}

}  // namespace sipi::apic::fuzz
