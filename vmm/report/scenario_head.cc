#include "vmm/report/scenario_head.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "vmm/timeline/outcome.h"
#include "vmm/timeline/scenario_names.h"

namespace sipi {
namespace {

void AddOnce(const std::string& line, std::vector<std::string>& lines) {
  if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
}

void AddRemarks(const RunRecord& record, bool complete, std::vector<std::string>& lines) {
  if (!complete) AddOnce(PartialText(record), lines);
  if (!record.diagnosis.empty()) AddOnce(record.diagnosis, lines);
  for (const std::string& note : record.notes) AddOnce(absl::StrCat("note: ", note), lines);
}

std::string Lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) absl::StrAppend(&text, line, "\n");
  return text;
}

}  // namespace

std::string KernelText(const abi::KernelKnobs& kernel) {
  return absl::StrCat("HZ=", kernel.hz, ", preempt ", Name(kernel.preemption), ", RCU ",
                      Name(kernel.rcu_flavour));
}

std::string ScenarioHead(const RunRecord& record) {
  const std::string host = HostLine(record.host);
  std::string text = host.empty() ? "" : absl::StrCat("host ", host, "\n");
  absl::StrAppend(&text, record.cpus_offered, record.machine == "sim" ? " simulated" : "",
                  " CPUs, irqchip ", record.irqchip, ", ", record.apic, ", profile ",
                  record.profile, ", seed ", record.seed);
  if (record.services.has_value()) {
    absl::StrAppend(&text, "; ", KernelText(record.services->kernel));
  }
  return absl::StrCat(text, "\n");
}

std::string PartialText(const RunRecord& record) {
  if (record.outcome == Outcome::kPartial) return "partial: not all CPUs came up";
  if (record.outcome != Outcome::kComplete) {
    return absl::StrCat("partial: the run was cut short (", Name(record.outcome), ")");
  }
  return record.lost_events != 0 ? "partial: events were lost"
                                 : "partial: not all that was asked for was done";
}

std::string ScenarioRemarks(const RunRecord& record, bool complete) {
  std::vector<std::string> lines;
  AddRemarks(record, complete, lines);
  return Lines(lines);
}

std::string ScenarioRemarks(const std::vector<RunRecord>& records,
                            const std::vector<bool>& complete) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < records.size(); ++i) AddRemarks(records[i], complete[i], lines);
  return Lines(lines);
}

}  // namespace sipi
