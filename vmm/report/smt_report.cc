#include "vmm/report/smt_report.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "vmm/report/scenario_head.h"
#include "vmm/report/services_json.h"
#include "vmm/report/table.h"
#include "vmm/timeline/scenario_names.h"

namespace sipi {
namespace {

constexpr std::array<abi::GracePeriodKind, 3> kKinds = {
    abi::GracePeriodKind::kNormal, abi::GracePeriodKind::kExpedited, abi::GracePeriodKind::kNone};

SmtFigures FiguresOf(const std::vector<SmtSwitch>& switches, abi::SmtApproach approach, bool off) {
  SmtFigures figures;
  std::vector<int64_t> times;
  std::array<std::vector<int64_t>, 3> waits;
  for (const SmtSwitch& each : switches) {
    if (each.approach != approach || each.off != off) continue;
    ++figures.switches;
    figures.failed += each.failed;
    figures.operations += each.operations;
    figures.longest_hold_ns = std::max(figures.longest_hold_ns, each.longest_hold_ns);
    if (!each.ns.has_value()) {
      ++figures.unfinished;
      continue;
    }
    times.push_back(*each.ns);
    for (const abi::GracePeriodKind kind : kKinds) {
      waits[static_cast<size_t>(kind)].push_back(static_cast<int64_t>(each.waits.of(kind)));
    }
  }
  figures.ns = Summarize(std::move(times));
  for (size_t i = 0; i < waits.size(); ++i) {
    if (const auto summary = Summarize(waits[i])) figures.waits[i] = summary->median;
  }
  return figures;
}

// Of switches that had something to do.
void SetRatio(const SmtFigures& baseline, SmtFigures& figures) {
  if (baseline.operations == 0 || figures.operations == 0) return;
  if (!baseline.ns.has_value() || !figures.ns.has_value() || figures.ns->median == 0) return;
  figures.ratio =
      static_cast<double>(baseline.ns->median) / static_cast<double>(figures.ns->median);
}

std::string Time(const SmtFigures& figures) {
  return figures.ns.has_value() ? Milliseconds(figures.ns->median) : "-";
}

std::string Spread(const SmtFigures& figures) {
  if (!figures.ns.has_value()) return "-";
  return absl::StrCat(Milliseconds(figures.ns->min), "..", Milliseconds(figures.ns->max));
}

std::string WaitCounts(const SmtFigures& figures) {
  if (!figures.ns.has_value()) return "-";
  return absl::StrCat(figures.waits[0], "/", figures.waits[1], "/", figures.waits[2]);
}

std::string Ratio(const std::optional<double>& ratio) {
  return ratio.has_value() ? absl::StrFormat("%.2f", *ratio) : "-";
}

std::string Mark(const SmtRow& row, uint64_t lost_events) {
  if (row.whole()) return "";
  const uint32_t unfinished = row.off.unfinished + row.on.unfinished;
  const uint32_t failed = row.off.failed + row.on.failed;
  if (failed > 0)
    return absl::StrCat("partial: ", failed, failed == 1 ? " CPU" : " CPUs", " failed");
  if (lost_events > 0) return "partial: events lost";
  return unfinished > 0 ? "partial: not ended" : "partial";
}

std::vector<std::string> Cells(const SmtRow& row, bool spread, uint64_t lost_events) {
  std::vector<std::string> cells = {Name(row.approach)};
  for (const SmtFigures* figures : {&row.off, &row.on}) {
    cells.push_back(Time(*figures));
    if (spread) cells.push_back(Spread(*figures));
    cells.push_back(WaitCounts(*figures));
    cells.push_back(figures->switches != 0 ? Milliseconds(figures->longest_hold_ns) : "-");
    cells.push_back(Ratio(figures->ratio));
  }
  cells.push_back(absl::StrCat(row.off.failed + row.on.failed));
  cells.push_back(Mark(row, lost_events));
  return cells;
}

std::vector<Column> Columns(bool spread) {
  std::vector<Column> columns = {{"approach", Align::kLeft}};
  for (const char* way : {"off", "on"}) {
    columns.push_back({absl::StrCat(way, " ms")});
    if (spread) columns.push_back({"min..max ms"});
    columns.push_back({"GPs n/e/-"});
    columns.push_back({"lock ms"});
    columns.push_back({"x none"});
  }
  columns.push_back({"failed"});
  columns.push_back({"", Align::kLeft});
  return columns;
}

void WriteFigures(JsonWriter& json, const char* key, const SmtFigures& figures) {
  const auto figure = [&figures](int64_t Summary::*member) -> std::optional<int64_t> {
    if (!figures.ns.has_value()) return std::nullopt;
    return (*figures.ns).*member;
  };
  json.Key(key);
  json.BeginObject();
  json.Field("switches", figures.switches);
  json.Field("unfinished", figures.unfinished);
  json.Field("median_ns", figure(&Summary::median));
  json.Field("min_ns", figure(&Summary::min));
  json.Field("max_ns", figure(&Summary::max));
  json.Field("lower_quartile_ns", figure(&Summary::lower_quartile));
  json.Field("upper_quartile_ns", figure(&Summary::upper_quartile));
  json.Key("grace_periods");
  json.BeginObject();
  for (const abi::GracePeriodKind kind : kKinds) {
    json.Field(Name(kind), figures.waits[static_cast<size_t>(kind)]);
  }
  json.EndObject();
  json.Field("longest_hold_ns", figures.switches != 0
                                    ? std::optional<int64_t>(figures.longest_hold_ns)
                                    : std::nullopt);
  json.Field("operations", figures.operations);
  json.Field("failed", figures.failed);
  json.Key("ratio");
  if (figures.ratio.has_value()) {
    json.Double(*figures.ratio);
  } else {
    json.Null();
  }
  json.EndObject();
}

void WriteSwitch(JsonWriter& json, const SmtSwitch& each) {
  json.Line();
  json.BeginObject();
  json.Field("approach", Name(each.approach));
  json.Field("direction", each.off ? "off" : "on");
  json.Field("threads", each.threads);
  json.Field("begin_ns", each.begin_ns);
  json.Field("ns", each.ns);
  for (const abi::GracePeriodKind kind : kKinds) json.Field(Name(kind), each.waits.of(kind));
  json.Field("longest_hold_ns", each.longest_hold_ns);
  json.Field("operations", each.operations);
  json.Field("failed", each.failed);
  json.EndObject();
}

}  // namespace

std::vector<SmtRow> SmtRows(const std::vector<SmtSwitch>& switches) {
  std::vector<SmtRow> rows;
  for (const SmtSwitch& each : switches) {
    const bool known = std::any_of(rows.begin(), rows.end(), [&each](const SmtRow& row) {
      return row.approach == each.approach;
    });
    if (known) continue;
    SmtRow row;
    row.approach = each.approach;
    row.off = FiguresOf(switches, each.approach, true);
    row.on = FiguresOf(switches, each.approach, false);
    rows.push_back(row);
  }
  const auto none = std::find_if(rows.begin(), rows.end(), [](const SmtRow& row) {
    return row.approach == abi::SmtApproach::kNone;
  });
  if (none == rows.end()) return rows;
  const SmtRow baseline = *none;
  for (SmtRow& row : rows) {
    SetRatio(baseline.off, row.off);
    SetRatio(baseline.on, row.on);
  }
  return rows;
}

bool SmtComplete(const RunRecord& record, const std::vector<SmtRow>& rows) {
  if (record.outcome != Outcome::kComplete || record.lost_events != 0) return false;
  if (!record.services.has_value()) return false;
  const abi::ScenarioKnobs& knobs = record.services->knobs;
  if (rows.size() != static_cast<size_t>(std::popcount(knobs.approaches))) return false;
  return std::all_of(rows.begin(), rows.end(), [&knobs](const SmtRow& row) {
    return row.whole() && row.off.switches == knobs.rounds;
  });
}

std::string SmtTable(const RunRecord& record) {
  const std::vector<SmtSwitch> switches = SmtSwitches(record);
  const std::vector<SmtRow> rows = SmtRows(switches);
  std::string text = ScenarioHead(record);
  if (record.services.has_value()) {
    const uint32_t threads = record.services->knobs.smt_threads;
    absl::StrAppend(&text, Name(record.services->kernel.hotplug_steps), " steps, ", threads,
                    threads == 1 ? " thread" : " threads", " per core stay");
    if (const uint32_t busy = record.services->knobs.kernel_busy; busy != 0) {
      absl::StrAppend(&text, ", ", busy, busy == 1 ? " CPU" : " CPUs", " busy in the kernel");
    }
    absl::StrAppend(&text, "\n");
  }
  absl::StrAppend(&text,
                  "GPs: grace periods waited for, normal/expedited/none needed; lock: longest "
                  "time that the CPUs' write lock was held\n\n");
  if (rows.empty()) {
    absl::StrAppend(&text, record.lost_events == 0
                               ? "no switch has begun\n"
                               : absl::StrCat("nothing is known of a switch: ", record.lost_events,
                                              " events were lost\n"));
  } else {
    const bool spread = rows.front().off.switches > 1;
    TextTable table(Columns(spread));
    for (const SmtRow& row : rows) table.AddRow(Cells(row, spread, record.lost_events));
    absl::StrAppend(&text, table.Render());
  }
  const bool complete = SmtComplete(record, rows);
  return absl::StrCat(text, complete ? "" : "\n", ScenarioRemarks(record, complete));
}

std::string SmtJson(const RunRecord& record) {
  const std::vector<SmtSwitch> switches = SmtSwitches(record);
  const std::vector<SmtRow> rows = SmtRows(switches);
  JsonWriter json;
  json.BeginObject();
  WriteScenarioHead(json, "sipi.smt/1", record);
  if (record.services.has_value()) {
    json.Field("rounds", record.services->knobs.rounds);
    json.Field("threads", record.services->knobs.smt_threads);
    json.Field("kernel_busy", record.services->knobs.kernel_busy);
  }
  json.Field("complete", SmtComplete(record, rows));
  json.Line();
  json.Key("rows");
  json.BeginArray();
  for (const SmtRow& row : rows) {
    json.Line();
    json.BeginObject();
    json.Field("approach", Name(row.approach));
    WriteFigures(json, "off", row.off);
    WriteFigures(json, "on", row.on);
    json.EndObject();
  }
  json.EndArray();
  json.Line();
  json.Key("switches");
  json.BeginArray();
  for (const SmtSwitch& each : switches) WriteSwitch(json, each);
  json.Line();
  json.EndArray();
  json.EndObject();
  return json.Take();
}

}  // namespace sipi
