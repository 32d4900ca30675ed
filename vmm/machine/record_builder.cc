#include "vmm/machine/record_builder.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "guest/abi/percpu.h"
#include "vmm/base/status_macros.h"
#include "vmm/machine/config_check.h"
#include "vmm/machine/diagnosis.h"
#include "vmm/machine/torture_so_far.h"
#include "vmm/timeline/strategy_name.h"

namespace sipi {
namespace {

void Describe(const RunConfig& config, RunRecord& record) {
  record.machine = config.machine == MachineKind::kSim ? "sim" : "kvm";
  record.irqchip = Name(config.irqchip);
  record.apic = config.apic_mode == abi::ApicMode::kX2Apic ? "x2apic" : "xapic";
  record.strategy = StrategyName(config.strategy);
  record.profile = config.profile.name;
  record.driver = config.driver == abi::Driver::kHost ? "host" : "guest";
  record.seed = config.seed;
  record.cpus_offered = config.topology.cpu_count();
  record.cpus_wanted = static_cast<uint32_t>(config.order.size()) + 1;
  const bool siblings = config.topology.threads_per_core > 1;
  record.smt_control = !siblings ? "notsupported" : config.smt ? "on" : "off";
}

void AddServices(const RunConfig& config, const std::optional<abi::TortureCounters>& counters,
                 RunRecord& record) {
  if (config.kernel.services == 0) return;
  ServicesInfo info;
  info.scenario = config.scenario;
  info.kernel = config.kernel;
  info.knobs = config.scenario_knobs;
  if (counters.has_value()) info.counters = *counters;
  record.services = info;
}

// The ring of one CPU, as far as its header can be believed: nothing if the CPU never had one.
GuestRing RingOf(const ArenaLayout& arena, const GuestMemory& memory, uint32_t cpu,
                 std::vector<std::string>& notes) {
  GuestRing ring;
  ring.cpu = static_cast<int32_t>(cpu);
  const Gpa at = arena.percpu + uint64_t{cpu} * arena.percpu_stride_bytes;
  const absl::StatusOr<abi::PerCpuHeader*> header = memory.At<abi::PerCpuHeader>(at);
  if (!header.ok() || (*header)->ring_begin == 0) return ring;
  const abi::PerCpuHeader copy = **header;
  const uint32_t capacity = cpu == 0 ? arena.boot_ring_records : arena.percpu_ring_records;
  const uint64_t bytes = uint64_t{capacity} * sizeof(abi::TraceRecord);
  const Gpa low = cpu == 0 ? arena.boot_ring : at;
  const uint64_t room = cpu == 0 ? bytes : arena.percpu_stride_bytes;
  const bool sane = copy.ring_begin >= low.value && copy.ring_end <= low.value + room &&
                    copy.ring_end - copy.ring_begin == bytes && copy.ring_cursor >= copy.ring_begin;
  const absl::StatusOr<std::span<abi::TraceRecord>> records =
      memory.ArrayAt<abi::TraceRecord>(Gpa(copy.ring_begin), capacity);
  if (!sane || !records.ok()) {
    notes.push_back(absl::StrCat("trace ring of CPU ", cpu, ": its header is damaged"));
    return ring;
  }
  const uint64_t written = (copy.ring_cursor - copy.ring_begin) / sizeof(abi::TraceRecord);
  ring.records = records->first(std::min<uint64_t>(written, capacity));
  ring.lost = written - ring.records.size();
  return ring;
}

void AddTimeline(const Remains& remains, RunRecord& record) {
  Timeline timeline = Collect(remains.rings, remains.tracks, remains.clock);
  record.events = std::move(timeline.events);
  record.lost_events = timeline.lost + remains.lost_side_events;
  if (record.lost_events != 0) {
    record.notes.push_back(LostEventsNote(record.lost_events));
  }
  if (timeline.unfinished != 0) {
    record.notes.push_back(
        absl::StrCat("records of the timeline that were being written when the run ended: ",
                     timeline.unfinished));
  }
}

// How far the CPU is: the AP's own word once it is let go, the control CPU's before that, and again
// after it has undone a failed bring-up.
abi::CpuhpState StateOf(const abi::CpuSlot& slot) {
  const bool up =
      slot.online != 0 || slot.prepare_state >= static_cast<uint32_t>(abi::CpuhpState::kBringupCpu);
  return static_cast<abi::CpuhpState>(up ? slot.cpuhp_state : slot.prepare_state);
}

// What the timeline says of second tries.
void AddRetries(RunRecord& record) {
  for (const Event& event : record.events) {
    if (event.name != abi::TraceEvent::kRetry || event.target >= record.cpus.size()) continue;
    record.cpus[event.target].retried = true;
    record.cpus[event.target].first_error = event.value;
  }
}

void AddFinals(const RunConfig& config, const Remains& remains, RunRecord& record) {
  const bool count_instructions = config.count_instructions;
  for (uint32_t i = 0; i < remains.slots.size(); ++i) {
    const abi::CpuSlot& slot = remains.slots[i];
    CpuFinal final;
    final.cpu = CpuNumber(i);
    final.apic_id = config.topology.places[i].apic_id;
    final.sync_state = static_cast<abi::SyncState>(slot.sync_state);
    final.cpuhp_state = StateOf(slot);
    final.error = slot.error;
    // A CPU whose way up has failed is lost, even if the run ended while it was still undoing its
    // steps. One whose way down has failed is back where it was.
    final.online =
        slot.online != 0 && (slot.error == 0 || final.cpuhp_state == abi::CpuhpState::kOnline);
    final.wanted = config.smt || config.topology.places[i].thread == 0;
    final.tsc_khz = slot.tsc_khz;
    if (count_instructions) final.instructions = remains.instructions(final.cpu);
    record.cpus_online += final.online ? 1u : 0u;
    record.counters["guest.inits"] += slot.inits_sent;
    record.counters["guest.startups"] += slot.startups_sent;
    record.counters["guest.ipis"] += slot.ipis_sent;
    record.counters["guest.wakes"] += slot.wakes;
    if (count_instructions) record.counters["guest.instructions"] += final.instructions;
    record.cpus.push_back(std::move(final));
  }
}

// What each CPU was doing: of those for which a reader will ask. Costs some ioctls each.
void AddDoing(const Remains& remains, RunRecord& record) {
  if (record.outcome == Outcome::kComplete) return;
  for (CpuFinal& final : record.cpus) {
    if (record.outcome == Outcome::kPartial && (final.online || !final.wanted)) continue;
    final.doing = remains.doing(final.cpu);
    if (remains.slots[final.cpu.value].parked != 0) {
      final.doing = absl::StrCat("parked by the guest (", final.doing, ")");
    }
  }
}

}  // namespace

RunRecord RecordOf(const RunConfig& config, const RunEnd& end, const Remains& remains) {
  RunRecord record;
  Describe(config, record);
  record.notes = remains.notes;
  record.counters = remains.counters;
  AddServices(config, remains.torture, record);
  AddFinals(config, remains, record);
  record.counters["guest.ipi_answers"] = remains.result->ipi_answers;
  record.outcome = OutcomeOf(end, *remains.result, record);
  record.complete = record.outcome == Outcome::kComplete || record.outcome == Outcome::kPartial;
  if (end.kind == EndKind::kSignal) record.signal = static_cast<int>(end.code);
  AddDoing(remains, record);
  AddTimeline(remains, record);  // the diagnosis names steps that failed
  record.diagnosis = Diagnose(end, *remains.result, config.time_limit_ms, record);
  AddRetries(record);
  AddNotes(*remains.result, record);
  const bool failed = std::any_of(record.events.begin(), record.events.end(), [](const Event& e) {
    return e.name == abi::TraceEvent::kStepFailed;
  });
  if (config.fault.kind == abi::Fault::kFailStep && !failed) {
    record.notes.push_back(absl::StrCat(
        "the failure asked for was not injected: CPU ", config.fault.cpu, " entered no step ",
        abi::Name(static_cast<abi::CpuhpState>(config.fault.value)), " that may fail"));
  }
  AddSerial(remains.serial, record);
  return record;
}

absl::StatusOr<RunRecord> BuildRecord(const RunConfig& config, const ArenaLayout& arena,
                                      const RunEnd& end, Machine& machine) {
  const GuestMemory& memory = machine.memory();
  Remains remains;
  ASSIGN_OR_RETURN(remains.slots, memory.ArrayAt<abi::CpuSlot>(arena.slots, machine.cpus()));
  ASSIGN_OR_RETURN(remains.result, memory.At<abi::ResultPage>(arena.result));
  if (arena.heap_bytes != 0) {
    ASSIGN_OR_RETURN(const abi::TorturePage* page, memory.At<abi::TorturePage>(arena.torture));
    remains.torture = TortureSoFar(*page, [&memory](uint64_t gpa) -> const abi::TortureTally* {
      const absl::StatusOr<abi::TortureTally*> tally = memory.At<abi::TortureTally>(Gpa(gpa));
      return tally.ok() ? *tally : nullptr;
    });
  }
  for (uint32_t cpu = 0; cpu < machine.cpus(); ++cpu) {
    remains.rings.push_back(RingOf(arena, memory, cpu, remains.notes));
  }
  remains.tracks = machine.Tracks();
  remains.clock = machine.clock();
  remains.lost_side_events = machine.lost_side_events();
  remains.counters = machine.Counters();
  remains.serial = machine.serial_summary();
  remains.doing = [&machine](CpuNumber cpu) { return machine.Doing(cpu); };
  remains.instructions = [&machine](CpuNumber cpu) { return machine.Instructions(cpu); };
  return RecordOf(config, end, remains);
}

}  // namespace sipi
