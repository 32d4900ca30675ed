#include "vmm/report/scale_report.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "vmm/report/scenario_head.h"
#include "vmm/report/services_json.h"
#include "vmm/timeline/outcome.h"
#include "vmm/timeline/scale_statistics.h"
#include "vmm/timeline/scenario_names.h"
#include "vmm/timeline/statistics.h"

namespace sipi {
namespace {

bool Expedited(const RunRecord& record) { return record.services->knobs.expedited != 0; }

bool Async(const RunRecord& record) { return record.services->knobs.async != 0; }

uint32_t WritersAsked(const RunRecord& record) {
  return abi::WritersOf(record.services->knobs.writers, record.cpus_wanted);
}

// What a duration is one of, in the lines of rcuscale and of its script.
const char* Measured(const RunRecord& record) {
  if (Async(record)) return "call_rcu";
  return Expedited(record) ? "synchronize_rcu_expedited" : "synchronize_rcu";
}
const char* Unit(const RunRecord& record) { return Async(record) ? "callbacks" : "gps"; }

std::vector<int64_t> AllDurations(const ScaleResult& result) {
  std::vector<int64_t> all;
  for (const auto& [cpu, durations] : result.durations_ns) {
    all.insert(all.end(), durations.begin(), durations.end());
  }
  return all;
}

// What rcuscale prints of its parameters when it starts.
std::string StartLine(const RunRecord& record) {
  const abi::ScenarioKnobs& knobs = record.services->knobs;
  return absl::StrCat("rcu-scale:--- Start of test: gp_async=", uint32_t{knobs.async},
                      Async(record) ? absl::StrCat(" gp_async_max=", abi::kScaleAsyncMax) : "",
                      " gp_exp=", uint32_t{knobs.expedited}, " nreaders=", knobs.readers,
                      " nwriters=", WritersAsked(record), " measurements=", knobs.measurements,
                      "\n");
}

// Each writer's progress. Where events were lost, their absence says nothing of the writers.
std::string ProgressLines(const RunRecord& record, const ScaleResult& result) {
  std::string text;
  const uint32_t wanted = record.services->knobs.measurements;
  const bool lost = record.lost_events != 0;
  for (const auto& [cpu, times] : result.durations_ns) {
    if (times.size() >= wanted) {
      absl::StrAppend(&text, "rcu-scale: rcu_scale_writer ", cpu, " has ", wanted,
                      " measurements\n");
    } else {
      absl::StrAppend(&text, "rcu-scale:!!! rcu_scale_writer ", cpu, " has ", times.size(),
                      " measurements of ", wanted, lost ? " in what is left of its events" : "",
                      "\n");
    }
  }
  if (lost) {
    absl::StrAppend(&text, "rcu-scale:!!! ", LostEventsNote(record.lost_events), "\n");
  } else if (result.durations_ns.size() < WritersAsked(record)) {
    absl::StrAppend(&text, "rcu-scale:!!! ", WritersAsked(record) - result.durations_ns.size(),
                    " writers have not started\n");
  }
  return text;
}

// A writer's number is that of its CPU.
std::string WriterLines(const RunRecord& record, const ScaleResult& result, bool durations) {
  std::string text = ProgressLines(record, result);
  if (result.end_ns.has_value()) absl::StrAppend(&text, "rcu-scale: Test complete\n");
  for (const auto& [cpu, times] : result.durations_ns) {
    absl::StrAppend(&text, "rcu-scale: writer ", cpu, " ", Unit(record), ": ", times.size(), "\n");
  }
  if (result.begin_ns.has_value() && result.end_ns.has_value()) {
    absl::StrAppend(&text, "rcu-scale: start: ", *result.begin_ns, " end: ", *result.end_ns,
                    " duration: ", *result.end_ns - *result.begin_ns, " ", Unit(record), ": ",
                    result.measurements(), " batches: ", result.batches, "\n");
  }
  if (!durations) return text;
  for (const auto& [cpu, times] : result.durations_ns) {
    for (size_t i = 0; i < times.size(); ++i) {
      absl::StrAppendFormat(&text, "rcu-scale: %4d writer-duration: %5d %d\n", cpu, i, times[i]);
    }
  }
  return text;
}

std::string Figures(const RunRecord& record, const ScaleStatistics& figures,
                    const ScaleResult& result) {
  const char* what = Async(record) ? "call_rcu()" : "grace-period";
  std::string text = absl::StrCat("Histogram bucket size: ", AwkNumber(figures.bucket_us), "\n");
  for (const auto& [bucket, count] : figures.histogram) {
    absl::StrAppend(&text, AwkNumber(static_cast<double>(bucket) * figures.bucket_us), " ", count,
                    "\n");
  }
  absl::StrAppend(&text, "Average ", what, " duration: ", AwkNumber(figures.average_us),
                  " microseconds\n");
  const std::pair<const char*, double> lines[] = {{"Minimum", figures.minimum_us},
                                                  {"50th percentile", figures.p50_us},
                                                  {"90th percentile", figures.p90_us},
                                                  {"99th percentile", figures.p99_us},
                                                  {"Maximum", figures.maximum_us}};
  for (const auto& [name, us] : lines) {
    absl::StrAppend(&text, name, " ", what, " duration: ", AwkNumber(us), "\n");
  }
  const uint64_t periods = result.measurements();
  const std::string ratio =
      result.batches == 0
          ? "-"
          : AwkNumber(static_cast<double>(periods) / static_cast<double>(result.batches));
  absl::StrAppend(&text, Async(record) ? "Callbacks: " : "Grace periods: ", periods,
                  " Batches: ", result.batches, " Ratio: ", ratio, "\n");
  return text;
}

void WriteStatistics(JsonWriter& json, const ScaleStatistics& figures) {
  const std::pair<const char*, double> fields[] = {
      {"average_us", figures.average_us}, {"minimum_us", figures.minimum_us},
      {"p50_us", figures.p50_us},         {"p90_us", figures.p90_us},
      {"p99_us", figures.p99_us},         {"maximum_us", figures.maximum_us},
      {"bucket_us", figures.bucket_us}};
  for (const auto& [name, us] : fields) {
    json.Key(name);
    json.Double(us);
  }
  json.Key("histogram");
  json.BeginArray();
  for (const auto& [bucket, count] : figures.histogram) {
    json.BeginArray();
    json.Double(static_cast<double>(bucket) * figures.bucket_us);
    json.UInt(count);
    json.EndArray();
  }
  json.EndArray();
}

// How long the grace periods themselves took, that ended in the window: until they were set up (or,
// expedited, every leaf was asked), and in all. Waiters come on top.
void WritePhases(JsonWriter& json, const RunRecord& record, const ScaleResult& result) {
  std::vector<int64_t> ready;
  std::vector<int64_t> whole;
  for (const GracePeriod& each : GracePeriods(record)) {
    if (!result.served_by[each.expedited ? 1 : 0] || !each.end_ns.has_value()) continue;
    if (!each.ready_ns.has_value() || !result.begin_ns.has_value()) continue;
    if (*each.end_ns < *result.begin_ns || *each.end_ns > result.end_ns.value_or(INT64_MAX)) {
      continue;
    }
    ready.push_back(*each.ready_ns - each.begin_ns);
    whole.push_back(*each.end_ns - each.begin_ns);
  }
  const auto median = [](const std::vector<int64_t>& samples) -> std::optional<int64_t> {
    const std::optional<Summary> summary = Summarize(samples);
    if (!summary.has_value()) return std::nullopt;
    return summary->median;
  };
  json.Key("phases");
  json.BeginObject();
  json.Field("median_ready_ns", median(ready));
  json.Field("median_whole_ns", median(whole));
  json.EndObject();
}

// Where a knob made them another kind of grace periods than those asked for.
std::string ServedNote(const RunRecord& record, const ScaleResult& result) {
  const bool normal = result.served(abi::GracePeriodKind::kNormal);
  const bool expedited = result.served(abi::GracePeriodKind::kExpedited);
  if (Expedited(record) && normal) {
    return "note: rcu_normal is on: normal grace periods served, and are counted\n";
  }
  if (!Expedited(record) && expedited) {
    return "note: rcu_expedited is on: expedited grace periods served, and are counted\n";
  }
  return "";
}

}  // namespace

bool ScaleComplete(const RunRecord& record, const ScaleResult& result) {
  if (record.outcome != Outcome::kComplete || record.lost_events != 0) return false;
  if (!result.end_ns.has_value() || result.durations_ns.size() != WritersAsked(record)) {
    return false;
  }
  return std::all_of(result.durations_ns.begin(), result.durations_ns.end(),
                     [&record](const auto& writer) {
                       return writer.second.size() >= record.services->knobs.measurements;
                     });
}

std::string ScaleText(const RunRecord& record, bool durations) {
  const ScaleResult result = ScaleMeasurements(record, Expedited(record));
  std::string text =
      absl::StrCat(ScenarioHead(record), StartLine(record), WriterLines(record, result, durations));
  const auto figures = ScaleStatisticsOf(AllDurations(result));
  if (figures.has_value()) {
    absl::StrAppend(&text, Figures(record, *figures, result));
  } else {
    absl::StrAppend(&text, "rcu-scale:!!! no measurement ",
                    record.lost_events == 0 ? "was made\n" : "is left\n");
  }
  // "!!!" is for what went wrong; notes are not.
  if (!ScaleComplete(record, result)) {
    // Of events that were lost the lines above have told.
    if (record.outcome != Outcome::kComplete || record.lost_events == 0) {
      absl::StrAppend(&text, "rcu-scale:!!! ", PartialText(record), "\n");
    }
    if (!record.diagnosis.empty()) {
      absl::StrAppend(&text, "rcu-scale:!!! ", record.diagnosis, "\n");
    }
  }
  absl::StrAppend(&text, ServedNote(record, result));
  for (const std::string& note : record.notes) {
    if (note != LostEventsNote(record.lost_events)) absl::StrAppend(&text, "note: ", note, "\n");
  }
  absl::StrAppend(&text, "Computed from sipi's timeline.\n");
  return text;
}

std::string ScaleJson(const RunRecord& record) {
  const ScaleResult result = ScaleMeasurements(record, Expedited(record));
  const abi::ScenarioKnobs& knobs = record.services->knobs;
  JsonWriter json;
  json.BeginObject();
  WriteScenarioHead(json, "sipi.rcu-scale/1", record);
  json.Field("complete", ScaleComplete(record, result));
  json.Field("expedited", knobs.expedited != 0);
  json.Field("async", knobs.async != 0);
  json.Field("measured", Measured(record));
  json.Key("served_by");
  json.BeginArray();
  for (const auto kind : {abi::GracePeriodKind::kNormal, abi::GracePeriodKind::kExpedited}) {
    if (result.served(kind)) json.String(Name(kind));
  }
  json.EndArray();
  json.Field("readers", knobs.readers);
  json.Field("measurements", knobs.measurements);
  json.Field("begin_ns", result.begin_ns);
  json.Field("end_ns", result.end_ns);
  json.Field(Async(record) ? "callbacks" : "grace_periods", result.measurements());
  json.Field("batches", result.batches);
  json.Line();
  const auto figures = ScaleStatisticsOf(AllDurations(result));
  if (figures.has_value()) WriteStatistics(json, *figures);
  WritePhases(json, record, result);
  json.Line();
  json.Key("writers");
  json.BeginArray();
  for (const auto& [cpu, times] : result.durations_ns) {
    json.Line();
    json.BeginObject();
    json.Field("cpu", cpu);
    WriteNumbers(json, "durations_ns", times);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  return json.Take();
}

}  // namespace sipi
