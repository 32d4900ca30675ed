#include "vmm/report/trace_json.h"

#include <cstdint>
#include <string>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "vmm/report/host_json.h"
#include "vmm/report/json_writer.h"
#include "vmm/report/service_spans.h"
#include "vmm/report/trace_spans.h"
#include "vmm/timeline/event_info.h"
#include "vmm/timeline/scenario_names.h"

namespace sipi {
namespace {

constexpr int32_t kPid = 1;

// The VM's track is the process's main thread, which viewers show first; CPU n follows as n + 2.
// Thread 0 is never used: viewers take it for the idle thread of a machine.
// The tracks of service_spans.h stand after all CPUs: their numbers have 16 bits.
int32_t Tid(int32_t cpu) {
  if (cpu < kVmTrack) return (1 << 16) + 2 - cpu;
  return cpu == kVmTrack ? kPid : cpu + 2;
}

void BeginEvent(JsonWriter& json, std::string_view name, const char* phase, int32_t tid) {
  json.Line();
  json.BeginObject();
  json.Field("name", name);
  json.Field("ph", phase);
  json.Field("pid", kPid);
  json.Field("tid", tid);
}

void WriteTime(JsonWriter& json, const char* key, int64_t ns) {
  json.Key(key);
  json.Microseconds(ns);
}

// One metadata event ("M"): process_name, thread_name, thread_sort_index.
template <class Value>
void WriteMetadata(JsonWriter& json, const char* kind, int32_t tid, const char* key, Value value) {
  BeginEvent(json, kind, "M", tid);
  WriteTime(json, "ts", 0);
  json.Key("args");
  json.BeginObject();
  json.Field(key, value);
  json.EndObject();
  json.EndObject();
}

void WriteSpan(JsonWriter& json, const Span& span, int32_t tid) {
  BeginEvent(json, span.name, "X", tid);
  json.Field("cat", span.category);
  WriteTime(json, "ts", span.begin_ns);
  WriteTime(json, "dur", span.end_ns - span.begin_ns);
  if (!span.args.empty() || span.part > 0 || !span.finished) {
    json.Key("args");
    json.BeginObject();
    json.RawMembers(span.args);
    if (span.part > 0) json.Field("part", span.part);
    if (!span.finished) json.Field("unfinished", true);
    json.EndObject();
  }
  json.EndObject();
}

void WriteInstant(JsonWriter& json, const Event& event, int32_t tid) {
  const EventInfo info = InfoOf(event.name);
  BeginEvent(json, abi::Name(event.name), "i", tid);
  json.Field("cat", event.name >= abi::TraceEvent::kHostFirst ? "host" : "guest");
  json.Field("s", "t");
  WriteTime(json, "ts", event.t_ns);
  if (info.has_target || info.value != ValueKind::kNone) {
    json.Key("args");
    json.BeginObject();
    if (info.has_target && event.target == abi::kAllTargets) {
      json.Field("target", "all");
    } else if (info.has_target) {
      json.Field("target", uint32_t{event.target});
    }
    if (info.value != ValueKind::kNone) json.Field("value", event.value);
    const std::string words = DescribeValue(event.name, event.value);
    if (!words.empty()) json.Field(ValueKey(info.value), words);
    json.EndObject();
  }
  json.EndObject();
}

void WriteNames(JsonWriter& json, const RunRecord& record,
                const std::map<int32_t, TraceTrack>& tracks) {
  std::unordered_map<int32_t, uint32_t> apic_ids;
  for (const CpuFinal& cpu : record.cpus) {
    apic_ids[static_cast<int32_t>(cpu.cpu.value)] = cpu.apic_id.value;
  }
  WriteMetadata(json, "process_name", kPid, "name",
                absl::StrCat("sipi ", record.strategy, ", ", record.cpus_offered, " CPUs"));
  for (const auto& [cpu, track] : tracks) {
    const auto id = apic_ids.find(cpu);
    const char* const service = ServiceTrackName(cpu);
    const std::string name = service != nullptr ? service
                             : cpu == kVmTrack  ? "VM"
                             : id == apic_ids.end()
                                 ? absl::StrCat("CPU ", cpu)
                                 : absl::StrCat("CPU ", cpu, " (APIC ", id->second, ")");
    WriteMetadata(json, "thread_name", Tid(cpu), "name", name);
    WriteMetadata(json, "thread_sort_index", Tid(cpu), "sort_index", Tid(cpu));
  }
}

void WriteOtherData(JsonWriter& json, const RunRecord& record) {
  json.Key("otherData");
  json.BeginObject();
  json.Field("schema", "sipi.trace/1");
  json.Field("machine", record.machine);
  WriteHost(json, record.host);
  json.Field("cpus_offered", record.cpus_offered);
  json.Field("seed", record.seed);
  json.Field("strategy", record.strategy);
  json.Field("irqchip", record.irqchip);
  json.Field("apic", record.apic);
  json.Field("profile", record.profile);
  json.Field("driver", record.driver);
  if (record.services.has_value() && record.services->scenario == abi::Scenario::kCallRcu) {
    json.Field("pinning", Name(record.services->kernel.worker_pinning));
  }
  json.Field("lost_events", record.lost_events);
  json.Field("complete", record.complete);
  json.EndObject();
}

}  // namespace

std::string TraceJson(const RunRecord& record) {
  const std::map<int32_t, TraceTrack> tracks = TraceTracks(record);
  JsonWriter json;
  json.BeginObject();
  json.Field("displayTimeUnit", "ns");
  WriteOtherData(json, record);
  json.Line();
  json.Key("traceEvents");
  json.BeginArray();
  WriteNames(json, record, tracks);
  for (const auto& [cpu, track] : tracks) {
    for (const Span& span : track.spans) WriteSpan(json, span, Tid(cpu));
    for (const Event* event : track.instants) WriteInstant(json, *event, Tid(cpu));
  }
  json.Line();
  json.EndArray();
  json.EndObject();
  return json.Take();
}

}  // namespace sipi
