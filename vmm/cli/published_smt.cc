#include "vmm/cli/published_smt.h"

#include "absl/strings/str_cat.h"
#include "vmm/base/status_macros.h"
#include "vmm/cli/kvm_access.h"
#include "vmm/cli/run_flags.h"
#include "vmm/cli/service_flags.h"
#include "vmm/cli/time_limits.h"

namespace sipi {
namespace {

constexpr uint32_t Bit(abi::SmtApproach approach) { return 1u << static_cast<uint32_t>(approach); }

// Each approach goes down to one thread a core and back: kSmtBegin names the approach, and how many
// threads are to stay.
absl::StatusOr<SmtTimes> TimesOf(const RunRecord& record) {
  SmtTimes times;
  std::pair<bool, bool> key;
  int64_t begin_ns = 0;
  for (const Event& event : record.events) {
    if (event.name == abi::TraceEvent::kSmtBegin) {
      key = {event.target == 1, event.value == static_cast<uint32_t>(abi::SmtApproach::kExpedite)};
      begin_ns = event.t_ns;
    } else if (event.name == abi::TraceEvent::kSmtEnd) {
      if (event.value != 0) {
        return absl::InternalError(absl::StrCat(event.value, " CPUs failed to switch"));
      }
      times[key] = event.t_ns - begin_ns;
    }
  }
  if (times.size() != 4) return absl::InternalError("not every switch came to its end");
  return times;
}

}  // namespace

absl::StatusOr<SmtTimes> SimulateSmt(const std::string& profile, StopRequest& stop) {
  RawFlags flags;
  flags.machine = "sim";
  flags.profile = profile;
  ASSIGN_OR_RETURN(CheckedConfig checked, MakeRunConfig(flags, SimulatorCpuLimits()));
  RunConfig& config = checked.config;
  config.serial_fd = -1;
  config.time_limit_ms = kServicesTimeLimit.simulated_ms;
  config.scenario = abi::Scenario::kSmt;
  config.kernel.services = 1;
  SetProfileKernel(config.profile, config.kernel);
  config.scenario_knobs.kernel_busy = config.profile.kernel_busy;
  config.scenario_knobs.approaches =
      Bit(abi::SmtApproach::kNone) | Bit(abi::SmtApproach::kExpedite);
  ASSIGN_OR_RETURN(const RunRecord record, RunMachine(config, stop));
  if (record.outcome != Outcome::kComplete) {
    return absl::InternalError(absl::StrCat(profile, ": ", record.diagnosis));
  }
  return TimesOf(record);
}

}  // namespace sipi
