#include "vmm/report/compare_json.h"

#include "vmm/report/host_json.h"
#include "vmm/report/json_writer.h"
#include "vmm/timeline/outcome.h"

namespace sipi {
namespace {

void WritePhases(JsonWriter& json, const std::array<int64_t, kPhaseCount>& phases_ns) {
  json.Key("phases_ns");
  json.BeginObject();
  for (const Phase phase : kPhases) {
    json.Field(Name(phase), phases_ns[static_cast<size_t>(phase)]);
  }
  json.EndObject();
}

void WriteSample(JsonWriter& json, const Sample& sample) {
  json.Line();
  json.BeginObject();
  json.Field("smpboot_ns", sample.smpboot_ns);
  json.Field("outcome", Name(sample.outcome));
  json.Field("cpus_online", sample.cpus_online);
  json.Field("lost_events", sample.lost_events);
  json.Field("seed", sample.seed);
  WritePhases(json, sample.phases_ns);
  json.EndObject();
}

void WriteRow(JsonWriter& json, const CompareRow& row) {
  const auto figure = [&row](int64_t Summary::*member) -> std::optional<int64_t> {
    if (!row.smpboot_ns.has_value()) return std::nullopt;
    return (*row.smpboot_ns).*member;
  };
  json.Line();
  json.BeginObject();
  json.Field("strategy", row.strategy);
  json.Field("runs", row.runs);
  json.Field("median_ns", figure(&Summary::median));
  json.Field("min_ns", figure(&Summary::min));
  json.Field("max_ns", figure(&Summary::max));
  json.Field("lower_quartile_ns", figure(&Summary::lower_quartile));
  json.Field("upper_quartile_ns", figure(&Summary::upper_quartile));
  json.Key("ratio");
  if (row.ratio.has_value()) {
    json.Double(*row.ratio);
  } else {
    json.Null();
  }
  json.Field("cpus_online", row.cpus_online);
  json.Field("cpus_offered", row.cpus_offered);
  json.Field("partial_runs", row.partial_runs);
  json.Field("vetoed_runs", row.vetoed_runs);
  WritePhases(json, row.phases_ns);
  json.Key("samples");
  json.BeginArray();
  for (const Sample& sample : row.samples) WriteSample(json, sample);
  json.EndArray();
  json.EndObject();
}

}  // namespace

std::string CompareJson(const Comparison& comparison) {
  const RunRecord& common = comparison.common();
  JsonWriter json;
  json.BeginObject();
  json.Field("schema", "sipi.compare/1");
  json.Field("machine", common.machine);
  WriteHost(json, common.host);
  json.Field("irqchip", common.irqchip);
  json.Field("apic", common.apic);
  json.Field("profile", common.profile);
  json.Field("driver", common.driver);
  json.Field("cpus_offered", common.cpus_offered);
  json.Field("baseline", comparison.baseline());
  json.Key("rows");
  json.BeginArray();
  for (const CompareRow& row : comparison.Rows()) WriteRow(json, row);
  json.Line();
  json.EndArray();
  json.EndObject();
  return json.Take();
}

}  // namespace sipi
