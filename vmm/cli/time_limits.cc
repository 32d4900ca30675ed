#include "vmm/cli/time_limits.h"

#include "absl/strings/str_cat.h"

namespace sipi {
namespace {

std::string HelpWith(const std::string& defaults) {
  return absl::StrCat("end a run after that long and say what each CPU was doing (default ",
                      defaults, ")");
}

// "60; simulated: 3600 of virtual time".
std::string Text(const DefaultTimeLimit& limit) {
  return absl::StrCat(limit.kvm_ms / 1000, "; simulated: ", limit.simulated_ms / 1000,
                      " of virtual time");
}

}  // namespace

int64_t ServicesTimeLimitMs(const RunConfig& config) {
  const int64_t base = config.machine == MachineKind::kSim ? kServicesTimeLimit.simulated_ms
                                                           : kServicesTimeLimit.kvm_ms;
  return base + config.scenario_knobs.duration_ms;
}

std::string BringUpTimeLimitHelp() { return HelpWith(Text(kBringUpTimeLimit)); }

std::string TimeLimitHelp(ServiceUse use) {
  const std::string services = Text(kServicesTimeLimit);
  switch (use) {
    case ServiceUse::kRun:
      return HelpWith(absl::StrCat(Text(kBringUpTimeLimit), "; of hotplug ", services));
    case ServiceUse::kCallRcu:
    case ServiceUse::kTorture:
      return HelpWith(absl::StrCat(services, "; and --seconds on top"));
    case ServiceUse::kSmt:
    case ServiceUse::kRcuScale:
    case ServiceUse::kRcuRef:
      break;
  }
  return HelpWith(services);
}

}  // namespace sipi
