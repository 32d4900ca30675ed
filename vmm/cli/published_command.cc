// `sipi bench published`: each published row beside what the simulator makes of its profile.
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "vmm/base/exit_codes.h"
#include "vmm/base/status_macros.h"
#include "vmm/cli/commands.h"
#include "vmm/cli/kvm_access.h"
#include "vmm/cli/messages.h"
#include "vmm/cli/process_setup.h"
#include "vmm/cli/published_rows.h"
#include "vmm/cli/published_smt.h"
#include "vmm/cli/run_flags.h"
#include "vmm/machine/run.h"
#include "vmm/report/table.h"
#include "vmm/timeline/analysis.h"
#include "vmm/timeline/statistics.h"

namespace sipi {
namespace {

// Median smpboot time over seeds 1 to `runs`. Every row goes the same way: the profile's own number
// of CPUs and topology, the strategy, nothing else.
absl::StatusOr<int64_t> Simulate(const PublishedRow& row, uint32_t runs, StopRequest& stop) {
  RawFlags flags;
  flags.machine = "sim";
  flags.profile = row.profile;
  flags.strategy = row.strategy;
  ASSIGN_OR_RETURN(CheckedConfig checked, MakeRunConfig(flags, SimulatorCpuLimits()));
  checked.config.serial_fd = -1;
  std::vector<int64_t> times;
  for (uint32_t seed = 1; seed <= runs; ++seed) {
    checked.config.seed = seed;
    if (stop.signal() != 0) return absl::CancelledError("ended by a signal");
    ASSIGN_OR_RETURN(const RunRecord record, RunMachine(checked.config, stop));
    const std::optional<int64_t> smpboot = Analyze(record).smpboot_ns;
    if (!smpboot || record.outcome != Outcome::kComplete) {
      return absl::InternalError(absl::StrCat(row.profile, ", ", row.strategy,
                                              ": not all CPUs came up: ", record.diagnosis));
    }
    times.push_back(*smpboot);
  }
  return Summarize(std::move(times))->median;
}

std::string ErrorPercent(int64_t simulated_ns, int64_t published_ns) {
  return absl::StrFormat("%+.1f", static_cast<double>(simulated_ns - published_ns) * 100 /
                                      static_cast<double>(published_ns));
}

absl::StatusOr<std::string> SmtRows(StopRequest& stop) {
  TextTable table({{"profile", Align::kLeft},
                   {"SMT", Align::kLeft},
                   {"grace periods", Align::kLeft},
                   {"published s"},
                   {"simulated s"},
                   {"error %"},
                   {"", Align::kLeft}});
  std::map<std::string, SmtTimes> by_profile;
  for (const PublishedSmtRow& row : kPublishedSmtRows) {
    if (!by_profile.contains(row.profile)) {
      ASSIGN_OR_RETURN(by_profile[row.profile], SimulateSmt(row.profile, stop));
    }
    const int64_t simulated_ns = by_profile[row.profile].at({row.off, row.expedited});
    table.AddRow({row.profile, row.off ? "off" : "on", row.expedited ? "expedited" : "normal",
                  absl::StrFormat("%.1f", static_cast<double>(row.published_ns) / 1e9),
                  absl::StrFormat("%.1f", static_cast<double>(simulated_ns) / 1e9),
                  ErrorPercent(simulated_ns, row.published_ns),
                  row.fitted ? "fitted" : "predicted"});
  }
  return table.Render();
}

}  // namespace

int PublishedCommand(uint32_t runs) {
  StopRequest stop;
  const SignalsStop signals(stop);
  TextTable table({{"profile", Align::kLeft},
                   {"strategy", Align::kLeft},
                   {"published ms"},
                   {"simulated ms"},
                   {"error %"},
                   {"", Align::kLeft}});
  for (const PublishedRow& row : kPublishedRows) {
    const absl::StatusOr<int64_t> simulated = Simulate(row, runs, stop);
    if (stop.signal() != 0) return static_cast<int>(ExitCode::kSignalBase) + stop.signal();
    if (!simulated.ok()) {
      Say(simulated.status());
      return static_cast<int>(ExitCodeOf(simulated.status()));
    }
    table.AddRow({row.profile, row.strategy, absl::StrCat(row.published_ns / kPublishedMs),
                  Milliseconds(*simulated), ErrorPercent(*simulated, row.published_ns),
                  row.fitted ? "fitted" : "predicted"});
  }
  const absl::StatusOr<std::string> smt = SmtRows(stop);
  if (stop.signal() != 0) return static_cast<int>(ExitCode::kSignalBase) + stop.signal();
  if (!smt.ok()) {
    Say(smt.status());
    return static_cast<int>(ExitCodeOf(smt.status()));
  }
  const bool printed = Print(absl::StrCat(
      "Published bring-up times, and the simulator with the profile of that machine; medians of ",
      runs,
      " seeds.\nFitted: the profile's figures were taken from this row (docs/profiles.md).\n\n",
      table.Render(), "\nSMT switched, a core's threads being eight:\n\n", *smt));
  return static_cast<int>(printed ? ExitCode::kOk : ExitCode::kError);
}

}  // namespace sipi
