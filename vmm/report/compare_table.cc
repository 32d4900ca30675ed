#include "vmm/report/compare_table.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "vmm/report/table.h"

namespace sipi {
namespace {

std::vector<Column> Columns(const std::string& baseline) {
  return {{"strategy", Align::kLeft},
          {"runs"},
          {"median ms"},
          {"min..max ms"},
          {"kick"},
          {"AP start-up"},
          {"wait alive"},
          {"starting"},
          {"online"},
          {absl::StrCat("x ", baseline)},
          {"CPUs", Align::kRight},
          {"", Align::kLeft}};
}

std::vector<std::string> Cells(const CompareRow& row) {
  std::vector<std::string> cells = {row.strategy, absl::StrCat(row.runs)};
  if (row.smpboot_ns.has_value()) {
    cells.push_back(Milliseconds(row.smpboot_ns->median));
    cells.push_back(
        absl::StrCat(Milliseconds(row.smpboot_ns->min), "..", Milliseconds(row.smpboot_ns->max)));
  } else {
    cells.insert(cells.end(), {"-", "-"});
  }
  for (const int64_t ns : row.phases_ns) {
    cells.push_back(row.smpboot_ns.has_value() ? Milliseconds(ns) : "-");
  }
  cells.push_back(row.ratio.has_value() ? absl::StrFormat("%.2f", *row.ratio) : "-");
  cells.push_back(absl::StrCat(row.cpus_online, "/", row.cpus_offered));
  std::vector<std::string> marks;
  if (row.partial_runs == row.runs) {
    marks.push_back("partial");
  } else if (row.partial_runs > 0) {
    marks.push_back(absl::StrCat("partial in ", row.partial_runs, " of ", row.runs));
  }
  if (row.vetoed_runs > 0) marks.push_back("vetoed: serial was used");
  if (!marks.empty()) cells.push_back(absl::StrJoin(marks, ", "));
  return cells;
}

}  // namespace

std::string CompareTable(const Comparison& comparison) {
  if (comparison.empty()) return "no run has ended, so there is nothing to compare\n";
  const RunRecord& common = comparison.common();
  TextTable table(Columns(comparison.baseline()));
  for (const CompareRow& row : comparison.Rows()) table.AddRow(Cells(row));
  const std::string host = HostLine(common.host);
  return absl::StrCat(
      host.empty() ? "" : absl::StrCat("host ", host, "\n"), common.cpus_offered,
      common.machine == "sim" ? " simulated" : "", " CPUs, irqchip ", common.irqchip, ", ",
      common.apic, ", profile ", common.profile, ", driver ", common.driver,
      "; phases in ms, each the time during which some CPU was in it\n\n", table.Render());
}

}  // namespace sipi
