#include "vmm/report/payload_table.h"

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "vmm/report/table.h"
#include "vmm/timeline/outcome.h"
#include "vmm/timeline/statistics.h"

namespace sipi {
namespace {

std::string EndLine(const RunRecord& record) {
  std::string line = Name(record.outcome);
  if (record.outcome == Outcome::kGuestExit) {
    absl::StrAppend(&line, ": status ", record.payload->exit_status);
  }
  absl::StrAppend(&line, "; ", record.cpus_online, " of ", record.cpus_offered, " CPUs started");
  const int64_t end_ns = record.events.empty() ? 0 : record.events.back().t_ns;
  absl::StrAppend(&line, ", ", Duration(end_ns), " from the VM's creation to its end\n");
  if (!record.diagnosis.empty()) absl::StrAppend(&line, record.diagnosis, "\n");
  return line;
}

// Of each AP's last start: from the event `from` to the event `to`.
std::optional<Summary> Intervals(const RunRecord& record, abi::TraceEvent from,
                                 abi::TraceEvent to) {
  std::map<int32_t, int64_t> begun;
  std::map<int32_t, int64_t> taken;
  for (const Event& event : record.events) {
    if (event.cpu <= 0) continue;
    if (event.name == from) begun[event.cpu] = event.t_ns;
    const auto begin = begun.find(event.cpu);
    if (event.name == to && begin != begun.end()) taken[event.cpu] = event.t_ns - begin->second;
  }
  std::vector<int64_t> times;
  times.reserve(taken.size());
  for (const auto& [cpu, ns] : taken) times.push_back(ns);
  return Summarize(std::move(times));
}

std::string StartTable(const RunRecord& record) {
  using abi::TraceEvent;
  TextTable table({{"AP", Align::kLeft}, {"APs"}, {"min us"}, {"median us"}, {"max us"}});
  bool any = false;
  for (const auto& [name, from, to] :
       {std::tuple("vCPU made to first run", TraceEvent::kVcpuCreated, TraceEvent::kFirstRun),
        std::tuple("INIT to SIPI, as delivered", TraceEvent::kInitDelivered,
                   TraceEvent::kSipiDelivered),
        std::tuple("SIPI delivered to first run", TraceEvent::kSipiDelivered,
                   TraceEvent::kFirstRun)}) {
    const std::optional<Summary> summary = Intervals(record, from, to);
    if (!summary) continue;
    any = true;
    table.AddRow({name, absl::StrCat(summary->count), Microseconds(summary->min),
                  Microseconds(summary->median), Microseconds(summary->max)});
  }
  return any ? absl::StrCat("\n", table.Render()) : "";
}

std::string Counters(const RunRecord& record) {
  TextTable table({{"counter", Align::kLeft}, {"value"}});
  for (const auto& [name, value] : record.counters) {
    if (value != 0) table.AddRow({name, absl::StrCat(value)});
  }
  return absl::StrCat("\n", table.Render());
}

}  // namespace

std::string PayloadTable(const RunRecord& record) {
  std::string text =
      absl::StrCat("payload ", record.payload->file, " (", record.payload->kind, "), irqchip ",
                   record.irqchip, ", ", record.apic, ", profile ", record.profile, "\n",
                   EndLine(record), StartTable(record), Counters(record));
  for (const std::string& note : record.notes) absl::StrAppend(&text, "note: ", note, "\n");
  return text;
}

}  // namespace sipi
