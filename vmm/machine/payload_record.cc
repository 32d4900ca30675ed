#include "vmm/machine/payload_record.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "vmm/device/debug_exit.h"
#include "vmm/machine/config_check.h"
#include "vmm/machine/diagnosis.h"

namespace sipi {
namespace {

constexpr size_t kMostCpus = 8;  // named in one diagnosis

std::string Doings(const RunRecord& record) {
  std::string text;
  for (size_t i = 0; i < record.cpus.size() && i < kMostCpus; ++i) {
    const CpuFinal& cpu = record.cpus[i];
    absl::StrAppend(&text, i == 0 ? "" : " | ", "CPU ", cpu.cpu.value, " (APIC ID ",
                    cpu.apic_id.value, "): ", cpu.doing);
  }
  if (record.cpus.size() > kMostCpus) {
    absl::StrAppend(&text, " | and ", record.cpus.size() - kMostCpus, " more");
  }
  return text;
}

std::string Diagnose(const RunEnd& end, int64_t time_limit_ms, const RunRecord& record) {
  switch (record.outcome) {
    case Outcome::kAllHalted:
      return absl::StrCat("all CPUs are halted and nothing can wake them: ", Doings(record));
    case Outcome::kTimeLimit:
      return absl::StrCat(
          "the time limit of ", time_limit_ms,
          " ms is over (--time-limit-s); what the CPUs were doing: ", Doings(record));
    case Outcome::kInterrupted:
      return absl::StrCat("ended by signal ", end.code,
                          "; what the CPUs were doing: ", Doings(record));
    case Outcome::kGuestReset:
      return absl::StrFormat("CPU %u reset the machine through port 0x%x", end.cpu.value, end.code);
    case Outcome::kGuestFault:
      return end.text;
    default:
      return "";
  }
}

void AddCpus(const RunConfig& config, Machine& machine, RunRecord& record) {
  const bool ask = record.outcome != Outcome::kGuestExit && record.outcome != Outcome::kGuestReset;
  record.cpus.resize(machine.cpus());
  for (const Event& event : record.events) {
    const bool ran = event.name == abi::TraceEvent::kFirstRun;
    if (ran && event.cpu >= 0) record.cpus[static_cast<uint32_t>(event.cpu)].online = true;
  }
  for (uint32_t i = 0; i < machine.cpus(); ++i) {
    CpuFinal& cpu = record.cpus[i];
    cpu.cpu = CpuNumber(i);
    cpu.apic_id = machine.apic_id(cpu.cpu);
    if (config.count_instructions) {
      cpu.instructions = machine.Instructions(cpu.cpu);
      record.counters["guest.instructions"] += cpu.instructions;
    }
    if (ask) cpu.doing = machine.Doing(cpu.cpu);
    record.cpus_online += cpu.online ? 1u : 0u;
  }
}

}  // namespace

RunRecord BuildPayloadRecord(const RunConfig& config, PayloadKind kind, const RunEnd& end,
                             Machine& machine) {
  RunRecord record;
  record.irqchip = Name(config.irqchip);
  record.apic = config.apic_mode == abi::ApicMode::kX2Apic ? "x2apic" : "xapic";
  record.strategy = "payload";  // it sequences its CPUs itself
  record.driver = "guest";
  record.profile = config.profile.name;
  record.seed = config.seed;
  record.cpus_offered = machine.cpus();
  record.cpus_wanted = machine.cpus();
  record.payload = PayloadResult{
      .file = config.payload->path, .kind = std::string(PayloadKindName(kind)), .exit_status = 0};
  record.outcome = OutcomeOf(end.kind);
  record.complete = record.outcome == Outcome::kGuestExit || record.outcome == Outcome::kGuestReset;
  if (end.kind == EndKind::kGuestExit) record.payload->exit_status = DebugExitStatus(end.code);
  if (end.kind == EndKind::kSignal) record.signal = static_cast<int>(end.code);
  record.counters = machine.Counters();
  Timeline timeline = Collect({}, machine.Tracks(), machine.clock());
  record.events = std::move(timeline.events);
  record.lost_events = timeline.lost + machine.lost_side_events();
  if (record.lost_events != 0) {
    record.notes.push_back(LostEventsNote(record.lost_events));
  }
  AddCpus(config, machine, record);
  record.diagnosis = Diagnose(end, config.time_limit_ms, record);
  AddSerial(machine.serial_summary(), record);
  return record;
}

}  // namespace sipi
