// `sipi bench published`: each published row beside what the simulator makes of its profile.
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "vmm/base/exit_codes.h"
#include "vmm/base/status_macros.h"
#include "vmm/cli/commands.h"
#include "vmm/cli/kvm_access.h"
#include "vmm/cli/messages.h"
#include "vmm/cli/outputs.h"
#include "vmm/cli/process_setup.h"
#include "vmm/cli/progress.h"
#include "vmm/cli/published_report.h"
#include "vmm/cli/published_rows.h"
#include "vmm/cli/published_smt.h"
#include "vmm/cli/run_flags.h"
#include "vmm/machine/run.h"
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

// The rows in order; says on the terminal which one it is at.
class Published {
 public:
  Published(uint32_t runs, StopRequest& stop) : stop_(stop) { results_.runs = runs; }

  absl::Status Run() {
    ProgressLine progress(2, true);
    for (const PublishedRow& row : kPublishedRows) {
      progress.Show(absl::StrCat(row.profile, ", ", row.strategy));
      ASSIGN_OR_RETURN(const int64_t simulated_ns, Simulate(row, results_.runs, stop_));
      results_.bring_up.push_back(
          {row.profile, row.strategy, "", row.published_ns, simulated_ns, row.fitted});
    }
    std::map<std::string, SmtTimes> by_profile;
    for (const PublishedSmtRow& row : kPublishedSmtRows) {
      progress.Show(absl::StrCat(row.profile, ", SMT off and on"));
      if (!by_profile.contains(row.profile)) {
        ASSIGN_OR_RETURN(by_profile[row.profile], SimulateSmt(row.profile, stop_));
      }
      results_.smt.push_back({row.profile, row.off ? "off" : "on",
                              row.expedited ? "expedited" : "normal", row.published_ns,
                              by_profile[row.profile].at({row.off, row.expedited}), row.fitted});
    }
    return absl::OkStatus();
  }

  const PublishedResults& results() const { return results_; }

 private:
  StopRequest& stop_;
  PublishedResults results_;
};

}  // namespace

int PublishedCommand(const CommandLine& line) {
  const RawFlags& flags = line.flags;
  if (!OutputsWritable(flags)) return static_cast<int>(ExitCode::kUsage);
  StopRequest stop;
  const SignalsStop signals(stop);
  Published published(line.published_runs, stop);
  const absl::Status ran = published.Run();
  if (stop.signal() != 0) return static_cast<int>(ExitCode::kSignalBase) + stop.signal();
  if (!ran.ok()) {
    Say(ran);
    return static_cast<int>(ExitCodeOf(ran));
  }
  bool ok = flags.json == "-" || Print(PublishedText(published.results()));
  if (!flags.json.empty()) {
    ok &= WriteOutput(flags.json, PublishedJson(published.results()), "--json");
  }
  return static_cast<int>(ok ? ExitCode::kOk : ExitCode::kError);
}

}  // namespace sipi
