#include "vmm/report/run_json.h"

#include <cstddef>
#include <string>

#include "vmm/report/host_json.h"
#include "vmm/report/json_writer.h"
#include "vmm/report/services_json.h"
#include "vmm/timeline/analysis.h"
#include "vmm/timeline/event_info.h"
#include "vmm/timeline/outcome.h"

namespace sipi {
namespace {

void WriteHead(JsonWriter& json, const RunRecord& record) {
  json.Field("schema", "sipi.run/1");
  json.Field("machine", record.machine);
  WriteHost(json, record.host);
  json.Field("irqchip", record.irqchip);
  json.Field("apic", record.apic);
  json.Field("strategy", record.strategy);
  json.Field("profile", record.profile);
  json.Field("driver", record.driver);
  json.Field("seed", record.seed);
  json.Field("cpus_offered", record.cpus_offered);
  json.Field("cpus_wanted", record.cpus_wanted);
  json.Field("cpus_online", record.cpus_online);
  // A payload's kernel has a control of its own, if any.
  if (!record.payload) json.Field("smt_control", record.smt_control);
  json.Field("outcome", Name(record.outcome));
  json.Field("signal", record.signal);
  json.Field("diagnosis", record.diagnosis);
  if (record.services) WriteKernel(json, record.services->kernel);
  if (!record.payload) return;
  json.Key("payload");
  json.BeginObject();
  json.Field("file", record.payload->file);
  json.Field("kind", record.payload->kind);
  json.Field("exit_status", uint32_t{record.payload->exit_status});
  json.EndObject();
}

template <class Get>
void WritePhases(JsonWriter& json, std::string_view key, const Analysis& analysis, Get get) {
  json.Key(key);
  json.BeginObject();
  for (const Phase phase : kPhases) json.Field(Name(phase), get(analysis.phase(phase)));
  json.EndObject();
}

void WriteFigures(JsonWriter& json, const Analysis& analysis) {
  json.Line();
  json.Field("smpboot_ns", analysis.smpboot_ns);
  json.Field("other_ns", analysis.other_ns);
  WritePhases(json, "phases_ns", analysis, [](const PhaseTimes& p) { return p.wall_ns; });
  WritePhases(json, "phase_sums_ns", analysis, [](const PhaseTimes& p) { return p.sum_ns; });
  WritePhases(json, "phase_medians_ns", analysis, [](const PhaseTimes& p) { return p.median_ns; });
  WritePhases(json, "phase_unfinished", analysis, [](const PhaseTimes& p) { return p.unfinished; });
}

// What sipi's own guest tells of a CPU, and a payload does not.
void WriteBringUp(JsonWriter& json, const CpuFinal& cpu, const CpuTimes& times) {
  json.Field("kicked_ns", times.kicked_ns);
  json.Field("first_instruction_ns", times.first_instruction_ns);
  json.Field("alive_ns", times.alive_ns);
  json.Field("online_ns", times.online_ns);
  json.Field("sync_state", abi::Name(cpu.sync_state));
  json.Field("cpuhp_state", abi::Name(cpu.cpuhp_state));
  json.Field("cpuhp_state_number", static_cast<uint32_t>(cpu.cpuhp_state));
  json.Field("error", cpu.error);
  json.Field("wanted", cpu.wanted);
  json.Field("retried", cpu.retried);
  json.Field("first_error", cpu.first_error);
  json.Field("tsc_khz", cpu.tsc_khz);
}

void WriteCpu(JsonWriter& json, const CpuFinal& cpu, const CpuTimes& times, bool of_payload) {
  json.Line();
  json.BeginObject();
  json.Field("cpu", cpu.cpu.value);
  json.Field("apic_id", cpu.apic_id.value);
  json.Field("online", cpu.online);
  if (!of_payload) WriteBringUp(json, cpu, times);
  json.Field("instructions", cpu.instructions);
  json.Field("doing", cpu.doing);
  json.EndObject();
}

void WriteEvent(JsonWriter& json, const Event& event) {
  const EventInfo info = InfoOf(event.name);
  json.Line();
  json.BeginObject();
  json.Field("t_ns", event.t_ns);
  json.Field("cpu", event.cpu);
  json.Field("name", abi::Name(event.name));
  if (info.has_target && event.target == abi::kAllTargets) {
    json.Field("target", "all");
  } else if (info.has_target || event.target != 0) {
    json.Field("target", uint32_t{event.target});
  }
  if (info.value != ValueKind::kNone || event.value != 0) json.Field("value", event.value);
  if (const std::string words = DescribeValue(event.name, event.value); !words.empty()) {
    json.Key("args");
    json.BeginObject();
    json.Field(ValueKey(info.value), words);
    json.EndObject();
  }
  json.EndObject();
}

void WriteCounters(JsonWriter& json, const RunRecord& record) {
  json.Line();
  json.Key("counters");
  json.BeginObject();
  for (const auto& [name, value] : record.counters) json.Field(name, value);
  json.EndObject();
  json.Line();
  json.Key("notes");
  json.BeginArray();
  for (const std::string& note : record.notes) json.String(note);
  json.EndArray();
}

}  // namespace

std::string RunJson(const RunRecord& record) {
  const Analysis analysis = Analyze(record);
  JsonWriter json;
  json.BeginObject();
  WriteHead(json, record);
  WriteFigures(json, analysis);
  json.Line();
  json.Key("cpus");
  json.BeginArray();
  for (const CpuFinal& cpu : record.cpus) {
    const size_t index = cpu.cpu.value;
    WriteCpu(json, cpu, index < analysis.cpus.size() ? analysis.cpus[index] : CpuTimes(),
             record.payload.has_value());
  }
  json.EndArray();
  WriteHotplug(json, record);
  WriteCounters(json, record);
  json.Line();
  json.Key("events");
  json.BeginArray();
  for (const Event& event : record.events) WriteEvent(json, event);
  json.Line();
  json.EndArray();
  json.Field("lost_events", record.lost_events);
  json.Field("complete", record.complete);
  json.EndObject();
  return json.Take();
}

}  // namespace sipi
