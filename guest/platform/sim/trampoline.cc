#include "guest/platform/sim/trampoline.h"

#include <algorithm>

#include "guest/platform/sim/machine.h"

namespace sipi::sim {
namespace {

// The VMM's hash, as trampoline.S walks it. kNoCpu: the ID is in no table.
uint32_t FindCpu(const abi::BootParams& params, uint32_t apic_id) {
  const auto* table = reinterpret_cast<const abi::ApicHashEntry*>(
      reinterpret_cast<const std::byte*>(&params) + params.apic_hash_offset);
  const uint32_t mask = (1u << params.apic_hash_bits) - 1;
  uint32_t slot = apic_id * abi::kApicHashMultiplier >> (32 - params.apic_hash_bits);
  while (table[slot].cpu != abi::kNoCpu && table[slot].apic_id != apic_id) slot = (slot + 1) & mask;
  return table[slot].cpu;
}

// What CPUID shows: leaf 0BH EDX, or leaf 1 EBX[31:24].
uint32_t ShownId(const Cpu& cpu, abi::ApIdSource source) {
  // Firmware that lies is a fault, and those end.
  const bool lies = cpu.place.shown_apic_id && !cpu.machine.settled();
  const uint32_t shown = (lies ? *cpu.place.shown_apic_id : cpu.place.apic_id).value;
  return source == abi::ApIdSource::kCpuid1 ? shown & 0xff : shown;
}

// The AP's number, or kNoCpu with the ID that fits nobody.
uint32_t Identify(Cpu& cpu, const abi::BootParams& params, uint32_t* unknown) {
  Machine& machine = cpu.machine;
  const bool x2apic = cpu.apic.mode() == apic::ApicMode::kX2Apic;
  const uint32_t raw = machine.ReadApic(cpu, apic::Reg::kId);
  const uint32_t apic_id = x2apic ? raw : raw >> 24;
  *unknown = apic_id;
  const abi::ApIdSource source = params.knobs.ap_id_source;
  if (source == abi::ApIdSource::kApic) return FindCpu(params, apic_id);
  // CPUID shows the initial ID only, and firmware may lie: an AP whose two IDs differ parks.
  const uint32_t shown = ShownId(cpu, source);
  const uint32_t number = FindCpu(params, shown);
  if (number == abi::kNoCpu) {
    *unknown = shown;
    return number;
  }
  return (x2apic ? shown : shown & 0xff) == apic_id ? number : abi::kNoCpu;
}

}  // namespace

void Trampoline::Prepare(const abi::BootParams& params) {
  params_ = &params;
  locked_ = false;
  last_ = abi::kNoCpu;
  holder_ = nullptr;
}

void Trampoline::Remove(Cpu& cpu) { std::erase(waiters_, &cpu); }

uint64_t Trampoline::LineNs(const Cpu& cpu) const {
  const Costs& costs = cpu.machine.costs();
  const bool remote =
      last_ != abi::kNoCpu && cpu.machine.cpu(last_).place.package != cpu.place.package;
  return remote ? costs.remote_line_ns : costs.line_ns;
}

uint64_t Trampoline::MeanLineNs(const Cpu& cpu) const {
  const Costs& costs = cpu.machine.costs();
  if (waiters_.empty()) return costs.line_ns;
  const auto remote = static_cast<uint64_t>(
      std::count_if(waiters_.begin(), waiters_.end(),
                    [&cpu](const Cpu* each) { return each->place.package != cpu.place.package; }));
  return (remote * costs.remote_line_ns + (waiters_.size() - remote) * costs.line_ns) /
         waiters_.size();
}

uint64_t Trampoline::Queued(uint64_t port_ns, uint64_t line_ns) const {
  const uint64_t thinking = (port_ns + line_ns) / std::max<uint64_t>(line_ns, 1);
  return waiters_.size() > thinking ? waiters_.size() - thinking : 0;
}

void Trampoline::Acquire(Cpu& cpu) {
  Machine& machine = cpu.machine;
  machine.Sync(cpu);
  if (!locked_) {
    locked_ = true;
    machine.Spend(cpu, LineNs(cpu));
    last_ = cpu.number;
    return;
  }
  const uint64_t begin_ns = cpu.now_ns;
  waiters_.push_back(&cpu);
  machine.WaitForTrampoline(cpu);
  ++machine.stats().trampoline_waits;
  machine.stats().trampoline_wait_ns += cpu.now_ns - begin_ns;
}

void Trampoline::Take(Cpu& cpu, uint64_t time_ns) {
  locked_ = true;
  last_ = cpu.number;
  cpu.machine.GrantTrampoline(cpu, time_ns);
}

void Trampoline::Release(Cpu& cpu) {
  Machine& machine = cpu.machine;
  const Costs& costs = machine.costs();
  const uint64_t line_ns = MeanLineNs(cpu);
  const uint64_t queued = Queued(costs.port_ns, line_ns);
  machine.Spend(cpu, line_ns * (1 + queued));
  machine.Sync(cpu);
  last_ = cpu.number;
  locked_ = false;
  // Whoever tries next: any of those that run.
  std::vector<Cpu*>& candidates = machine.scratch();
  candidates.clear();
  const bool limited = machine.options().host_cores != 0;
  for (Cpu* each : waiters_) {
    if (!limited || each->on_core) candidates.push_back(each);
  }
  if (candidates.empty()) return;
  Cpu& next = *candidates[machine.random().Below(candidates.size())];
  const uint64_t period = costs.port_ns + line_ns;
  const uint64_t wait = queued != 0 ? 0 : period / (candidates.size() + 1);
  Take(next, cpu.now_ns + wait + LineNs(next));
}

void Trampoline::Run(Cpu& cpu, Vector startup) {
  Machine& machine = cpu.machine;
  const uint64_t first_instruction = machine.CpuTicks(cpu);
  if (params_ == nullptr || startup.value != abi::kTrampolineVector) {
    machine.Finish(cpu, {.kind = EndKind::kFault,
                         .cpu = CpuNumber(cpu.number),
                         .code = 0,
                         .text = "a SIPI started CPU " + std::to_string(cpu.number) + " at page " +
                                 std::to_string(startup.value) + ", where there is no code"});
  }
  const abi::BootParams& params = *params_;
  Kernel& kernel = machine.kernel();
  machine.Spend(cpu, machine.costs().trampoline_entry_ns);
  const bool locks = params.knobs.trampoline_lock != 0;
  if (locks) {
    Acquire(cpu);
    if (holder_ != nullptr && machine.chaotic()) {
      machine.Violation("CPUs " + std::to_string(holder_->number) + " and " +
                        std::to_string(cpu.number) + " hold the trampoline's lock at once");
    }
    holder_ = &cpu;
  }
  machine.Spend(cpu, machine.costs().trampoline_locked_ns);
  uint32_t unknown_id = 0;
  const uint32_t number = Identify(cpu, params, &unknown_id);
  if (number == abi::kNoCpu) {
    kernel.result->unknown_apic_id = unknown_id;
    kernel.result->unknown_apic_ids++;
  } else {
    kernel.result->trampoline_holder = number;
  }
  if (locks) {
    holder_ = nullptr;
    Release(cpu);
  }
  if (number == abi::kNoCpu) machine.Park(cpu);
  cpu.self = &kernel.percpu(CpuNumber(number));
  if (machine.chaotic()) machine.CheckStack(cpu);
  ApMain(kernel, *cpu.self, first_instruction);
}

}  // namespace sipi::sim
