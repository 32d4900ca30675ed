#include "vmm/report/run_table.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "vmm/report/hotplug_table.h"
#include "vmm/report/table.h"
#include "vmm/timeline/analysis.h"
#include "vmm/timeline/event_info.h"
#include "vmm/timeline/outcome.h"
#include "vmm/timeline/statistics.h"

namespace sipi {
namespace {

// More lines about missing CPUs than this would hide the rest of the report.
constexpr size_t kMaxMissingLines = 16;

std::string Title(const RunRecord& record) {
  const std::string host = HostLine(record.host);
  return absl::StrCat(host.empty() ? "" : absl::StrCat("host ", host, "\n"),
                      record.machine == "sim" ? "simulated, " : "", "strategy ", record.strategy,
                      WasVetoed(record) ? " (vetoed: serial was used)" : "", ", irqchip ",
                      record.irqchip, ", ", record.apic, ", profile ", record.profile, ", driver ",
                      record.driver, ", seed ", record.seed, "\n");
}

std::string OutcomeLine(const RunRecord& record, const Analysis& analysis) {
  std::string line = absl::StrCat(Name(record.outcome));
  if (record.outcome == Outcome::kInterrupted) absl::StrAppend(&line, " by signal ", record.signal);
  absl::StrAppend(&line, ": ", record.cpus_online, " of ", record.cpus_wanted, " CPUs online");
  if (record.cpus_wanted != record.cpus_offered) {
    absl::StrAppend(&line, ", SMT control ", record.smt_control, " leaves ",
                    record.cpus_offered - record.cpus_wanted, " siblings out");
  }
  if (analysis.smpboot_ns.has_value()) {
    absl::StrAppend(&line, ", smpboot ", Duration(*analysis.smpboot_ns));
  }
  if (!record.complete) absl::StrAppend(&line, "; the timeline ends early");
  if (record.lost_events > 0) {
    absl::StrAppend(&line, "; ", record.lost_events, " events were lost, so times may be missing");
  }
  absl::StrAppend(&line, "\n");
  if (!record.diagnosis.empty()) absl::StrAppend(&line, record.diagnosis, "\n");
  return line;
}

std::string PhaseTable(const Analysis& analysis) {
  TextTable table(
      {{"phase", Align::kLeft}, {"wall ms"}, {"sum ms"}, {"median us"}, {"times"}, {"unfinished"}});
  for (const Phase phase : kPhases) {
    const PhaseTimes& times = analysis.phase(phase);
    table.AddRow({Name(phase), Milliseconds(times.wall_ns), Milliseconds(times.sum_ns),
                  Microseconds(times.median_ns), absl::StrCat(times.intervals),
                  times.unfinished == 0 ? "" : absl::StrCat(times.unfinished)});
  }
  if (analysis.other_ns.has_value()) {
    table.AddRow({"other", Milliseconds(*analysis.other_ns), "", "", "", ""});
  }
  return table.Render();
}

// How long the APs took from their kick to a milestone.
std::string MilestoneTable(const Analysis& analysis) {
  using Member = std::optional<int64_t> CpuTimes::*;
  TextTable table({{"kick to", Align::kLeft}, {"CPUs"}, {"min us"}, {"median us"}, {"max us"}});
  bool any = false;
  for (const auto& [name, member] :
       {std::pair<const char*, Member>("first instruction", &CpuTimes::first_instruction_ns),
        {"alive", &CpuTimes::alive_ns},
        {"online", &CpuTimes::online_ns}}) {
    std::vector<int64_t> times;
    for (const CpuTimes& cpu : analysis.cpus) {
      const std::optional<int64_t> reached = cpu.*member;
      if (cpu.kicked_ns.has_value() && reached.has_value()) {
        times.push_back(*reached - *cpu.kicked_ns);
      }
    }
    const std::optional<Summary> summary = Summarize(std::move(times));
    if (!summary.has_value()) continue;
    any = true;
    table.AddRow({name, absl::StrCat(summary->count), Microseconds(summary->min),
                  Microseconds(summary->median), Microseconds(summary->max)});
  }
  return any ? absl::StrCat("\n", table.Render()) : "";
}

std::string MissingLine(const RunRecord& record, const CpuFinal& cpu) {
  const std::string failure = FailureText(record, cpu, WhichFailure::kLast);
  return absl::StrCat("CPU ", cpu.cpu.value, " (APIC ID ", cpu.apic_id.value,
                      ") is not online: ", "handshake ", abi::Name(cpu.sync_state), ", state ",
                      abi::Name(cpu.cpuhp_state), failure.empty() ? "" : ", ", failure,
                      cpu.doing.empty() ? "" : ", ", cpu.doing, "\n");
}

std::string MissingCpus(const RunRecord& record) {
  std::string text;
  std::vector<uint32_t> rest;
  size_t lines = 0;
  for (const CpuFinal& cpu : record.cpus) {
    if (cpu.online || !cpu.wanted) continue;
    if (lines < kMaxMissingLines) {
      text += MissingLine(record, cpu);
      ++lines;
    } else {
      rest.push_back(cpu.cpu.value);
    }
  }
  std::sort(rest.begin(), rest.end());
  if (!rest.empty()) {
    absl::StrAppend(&text, "and ", rest.size(), " more: CPUs ", CpuRanges(rest), "\n");
  }
  return text.empty() ? text : absl::StrCat("\n", text);
}

std::string Retries(const RunRecord& record) {
  std::string text;
  for (const CpuFinal& cpu : record.cpus) {
    if (!cpu.retried) continue;
    absl::StrAppend(&text, "CPU ", cpu.cpu.value, " (APIC ID ", cpu.apic_id.value,
                    ") was brought up once more: first ",
                    FailureText(record, cpu, WhichFailure::kFirst), ", then ",
                    cpu.online       ? std::string("online")
                    : cpu.error != 0 ? FailureText(record, cpu, WhichFailure::kLast)
                                     : std::string("not online"),
                    "\n");
  }
  return text.empty() ? text : absl::StrCat("\n", text);
}

std::string Counters(const RunRecord& record) {
  if (record.counters.empty()) return "";
  TextTable table({{"counter", Align::kLeft}, {"value"}});
  // What never happened stands in the JSON file only.
  for (const auto& [name, value] : record.counters) {
    if (value != 0) table.AddRow({name, absl::StrCat(value)});
  }
  return absl::StrCat("\n", table.Render());
}

std::string Notes(const RunRecord& record) {
  std::string text;
  for (const std::string& note : record.notes) absl::StrAppend(&text, "note: ", note, "\n");
  return text.empty() ? text : absl::StrCat("\n", text);
}

}  // namespace

std::string CpuRanges(const std::vector<uint32_t>& ascending) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < ascending.size();) {
    size_t last = i;
    while (last + 1 < ascending.size() && ascending[last + 1] == ascending[last] + 1) ++last;
    parts.push_back(last == i ? absl::StrCat(ascending[i])
                              : absl::StrCat(ascending[i], "-", ascending[last]));
    i = last + 1;
  }
  return absl::StrJoin(parts, ",");
}

std::string RunTable(const RunRecord& record) {
  const Analysis analysis = Analyze(record);
  return absl::StrCat(Title(record), OutcomeLine(record, analysis), "\n", PhaseTable(analysis),
                      MilestoneTable(analysis), HotplugTable(record), MissingCpus(record),
                      Retries(record), Counters(record), Notes(record));
}

}  // namespace sipi
