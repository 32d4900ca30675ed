// SMT switches on the simulated machines of published rows, for `sipi bench published`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "vmm/machine/run.h"

namespace sipi {

// What one machine's switches took: {off, expedited} to ns. One run per profile: the simulator has
// no chance in it where a profile has no jitter.
using SmtTimes = std::map<std::pair<bool, bool>, int64_t>;

// Errors as RunMachine's; Internal where a switch did not end or a CPU failed.
absl::StatusOr<SmtTimes> SimulateSmt(const std::string& profile, StopRequest& stop);

}  // namespace sipi
