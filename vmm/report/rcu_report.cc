#include "vmm/report/rcu_report.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "guest/abi/scenario_results.h"
#include "vmm/report/scenario_head.h"
#include "vmm/report/services_json.h"
#include "vmm/report/table.h"
#include "vmm/timeline/outcome.h"
#include "vmm/timeline/scale_statistics.h"
#include "vmm/timeline/scenario_names.h"
#include "vmm/timeline/service_analysis.h"
#include "vmm/timeline/statistics.h"

namespace sipi {
namespace {

constexpr double kPsPerNs = 1000;

struct RefFigures {
  double average_ns = 0;
  double minimum_ns = 0;
  double median_ns = 0;  // at index int((n + 1) / 2), counted from 1
  double maximum_ns = 0;
};

std::optional<RefFigures> RefFiguresOf(std::vector<uint32_t> points_ps) {
  if (points_ps.empty()) return std::nullopt;
  std::sort(points_ps.begin(), points_ps.end());
  const uint64_t sum = std::accumulate(points_ps.begin(), points_ps.end(), uint64_t{0});
  return RefFigures{
      .average_ns = static_cast<double>(sum) / static_cast<double>(points_ps.size()) / kPsPerNs,
      .minimum_ns = points_ps.front() / kPsPerNs,
      .median_ns = points_ps[(points_ps.size() + 1) / 2 - 1] / kPsPerNs,
      .maximum_ns = points_ps.back() / kPsPerNs};
}

uint32_t ReadersOf(const RunRecord& record) {
  return abi::RefReaders(record.services->knobs.readers, record.cpus_offered);
}

// The simulator charges what CPUs do to each other; a reader does nothing of that kind, and takes
// no virtual time. What its rounds take is the clock that is read at both ends.
bool MeasuresReaders(const RunRecord& record) { return record.machine != "sim"; }

constexpr char kNothingMeasured[] =
    "ref-scale: no duration: a reader is plain instructions, which take no virtual time\n"
    "ref-scale: measure on KVM (without --machine=sim), or the same source on the host: "
    "build/bench/rcu_read\n";

std::string RefLines(const std::vector<uint32_t>& points_ps) {
  std::string text = "Runs\tTime(ns)\n";
  for (size_t i = 0; i < points_ps.size(); ++i) {
    absl::StrAppendFormat(&text, "%d\t%d.%03d\n", i + 1, points_ps[i] / 1000, points_ps[i] % 1000);
  }
  return text;
}

std::string RefFigureLines(const RunRecord& record, const std::vector<uint32_t>& points_ps) {
  const auto figures = RefFiguresOf(points_ps);
  if (!figures.has_value() || !MeasuresReaders(record)) return "";
  std::string text =
      absl::StrCat("Average reader duration: ", AwkNumber(figures->average_ns),
                   " nanoseconds\nMinimum reader duration: ", AwkNumber(figures->minimum_ns),
                   "\nMedian reader duration: ", AwkNumber(figures->median_ns),
                   "\nMaximum reader duration: ", AwkNumber(figures->maximum_ns), "\n");
  // Some ten instructions: a processor that executes them needs nanoseconds.
  constexpr double kMostExecutedNs = 1000;
  if (figures->median_ns > kMostExecutedNs) {
    absl::StrAppend(&text,
                    "note: so long a read is none of a processor: KVM emulates this guest's "
                    "instructions, or its CPUs wait for cores; compare with figures of this host "
                    "only\n");
  }
  return text;
}

// What one run says of its pinning behaviour.
struct WorkerFiguresRow {
  std::optional<Summary> pinned_us;
  std::optional<double> callbacks_per_s;
};

WorkerFiguresRow RowOf(const WorkerResult& result) {
  WorkerFiguresRow row;
  std::vector<int64_t> times;
  for (const auto& [cpu, us] : result.pinned_us) times.push_back(static_cast<int64_t>(us));
  row.pinned_us = Summarize(std::move(times));
  if (result.window_ns.has_value() && *result.window_ns > 0) {
    // What trickles in after the window is no part of the rate.
    row.callbacks_per_s =
        static_cast<double>(result.window_callbacks) * 1e9 / static_cast<double>(*result.window_ns);
  }
  return row;
}

// Why the run may not show what it is about: lazy workers look where they are after so many loops.
std::string ShortRemark(const RunRecord& record, const WorkerResult& result) {
  constexpr uint64_t kLoops = 256;  // kLazyPinningLoops, liburcu's SET_AFFINITY_CHECK_PERIOD
  const bool lazy = record.services->kernel.worker_pinning == abi::WorkerPinning::kLazy;
  const uint64_t loops = record.services->counters.updates / std::max(1u, record.cpus_wanted);
  if (!lazy || !result.pinned_us.empty() || loops >= kLoops) return "";
  return absl::StrCat("note: lazy workers had some ", loops, " loops each and look where they are ",
                      "after ", kLoops, "; give more --seconds\n");
}

}  // namespace

bool RefComplete(const RunRecord& record) {
  return record.outcome == Outcome::kComplete && record.lost_events == 0 &&
         ReaderPoints(record).size() == record.services->knobs.rounds;
}

std::string RefText(const RunRecord& record) {
  const std::vector<uint32_t> points = ReaderPoints(record);
  const std::string text = absl::StrCat(
      ScenarioHead(record), "ref-scale: rcu_flavour=", Name(record.services->kernel.rcu_flavour),
      " nreaders=", ReadersOf(record), " loops=", abi::kRefLoops,
      " nruns=", record.services->knobs.rounds, "\n",
      MeasuresReaders(record) ? RefLines(points) : kNothingMeasured, "Points: ", points.size(),
      "\n", RefFigureLines(record, points));
  return absl::StrCat(text, ScenarioRemarks(record, RefComplete(record)),
                      "Computed from sipi's timeline.\n");
}

std::string RefJson(const RunRecord& record) {
  const std::vector<uint32_t> points = ReaderPoints(record);
  JsonWriter json;
  json.BeginObject();
  WriteScenarioHead(json, "sipi.rcu-ref/1", record);
  json.Field("complete", RefComplete(record));
  json.Field("readers", ReadersOf(record));
  json.Field("loops", abi::kRefLoops);
  json.Field("rounds", record.services->knobs.rounds);
  json.Field("measured", MeasuresReaders(record));
  json.Line();
  const auto figures = MeasuresReaders(record) ? RefFiguresOf(points) : std::nullopt;
  const std::pair<const char*, double RefFigures::*> fields[] = {
      {"average_ns", &RefFigures::average_ns},
      {"minimum_ns", &RefFigures::minimum_ns},
      {"median_ns", &RefFigures::median_ns},
      {"maximum_ns", &RefFigures::maximum_ns}};
  for (const auto& [name, member] : fields) {
    json.Key(name);
    if (figures.has_value()) {
      json.Double((*figures).*member);
    } else {
      json.Null();
    }
  }
  WriteNumbers(json, "points_ps", points);
  json.EndObject();
  return json.Take();
}

bool CallRcuComplete(const RunRecord& record) {
  const abi::TortureCounters& counters = record.services->counters;
  return record.outcome == Outcome::kComplete && record.lost_events == 0 &&
         counters.callbacks_queued > 0 && counters.callbacks_run == counters.callbacks_queued &&
         WorkerFigures(record).window_ns.has_value();
}

std::string CallRcuTable(const std::vector<RunRecord>& records) {
  TextTable table({{"pinning", Align::kLeft},
                   {"callbacks"},
                   {"in ms"},
                   {"callbacks/s"},
                   {"pinned"},
                   {"min us"},
                   {"median us"},
                   {"max us"},
                   {"ran away"},
                   {"", Align::kLeft}});
  std::vector<bool> whole;
  std::string remarks;
  for (const RunRecord& record : records) {
    const WorkerResult result = WorkerFigures(record);
    const WorkerFiguresRow row = RowOf(result);
    const auto us = [&row](int64_t Summary::*member) -> std::string {
      return row.pinned_us.has_value() ? absl::StrCat((*row.pinned_us).*member) : "-";
    };
    const bool complete = CallRcuComplete(record);
    table.AddRow(
        {Name(record.services->kernel.worker_pinning), absl::StrCat(result.window_callbacks),
         result.window_ns.has_value() ? Milliseconds(*result.window_ns) : "-",
         row.callbacks_per_s.has_value() ? absl::StrFormat("%.0f", *row.callbacks_per_s) : "-",
         absl::StrCat(result.pinned_us.size(), "/", record.cpus_wanted), us(&Summary::min),
         us(&Summary::median), us(&Summary::max), absl::StrCat(result.ran_away_cpus.size()),
         complete ? "" : "partial"});
    whole.push_back(complete);
    absl::StrAppend(&remarks, ShortRemark(record, result));
  }
  const std::string head =
      records.empty()
          ? "no run has ended\n"
          : absl::StrCat(ScenarioHead(records[0]),
                         "callbacks: queued as fast as possible, in ms: until they had run; "
                         "pinned: workers that bound themselves, and when; ran away: workers seen "
                         "on another CPU\n\n");
  return absl::StrCat(head, table.Render(), ScenarioRemarks(records, whole), remarks);
}

std::string CallRcuJson(const std::vector<RunRecord>& records) {
  JsonWriter json;
  json.BeginObject();
  json.Field("schema", "sipi.rcu-callrcu/1");
  json.Key("rows");
  json.BeginArray();
  for (const RunRecord& record : records) {
    const WorkerResult result = WorkerFigures(record);
    const WorkerFiguresRow row = RowOf(result);
    json.Line();
    json.BeginObject();
    json.Field("pinning", Name(record.services->kernel.worker_pinning));
    WriteScenarioHead(json, "sipi.rcu-callrcu/1", record);
    json.Field("complete", CallRcuComplete(record));
    json.Field("callbacks_queued", record.services->counters.callbacks_queued);
    json.Field("callbacks_run", record.services->counters.callbacks_run);
    json.Field("window_ns", result.window_ns);
    json.Field("window_callbacks", result.window_callbacks);
    json.Key("callbacks_per_s");
    if (row.callbacks_per_s.has_value()) {
      json.Double(*row.callbacks_per_s);
    } else {
      json.Null();
    }
    json.Key("pinned_us");
    json.BeginObject();
    for (const auto& [cpu, us] : result.pinned_us) json.Field(absl::StrCat(cpu), us);
    json.EndObject();
    json.Field("ran_away_times", result.ran_away);
    WriteNumbers(json, "ran_away_cpus", result.ran_away_cpus);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  return json.Take();
}

}  // namespace sipi
