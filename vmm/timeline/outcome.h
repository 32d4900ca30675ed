// Names of outcomes, for files and reports.
#pragma once

#include <optional>
#include <string_view>

#include "vmm/timeline/run_record.h"

namespace sipi {

// "complete", "partial", "guest-fault", "all-halted", "time-limit", "interrupted",
// "guest-exit", "guest-reset".
const char* Name(Outcome outcome);

// The inverse; nothing for an unknown name.
std::optional<Outcome> OutcomeByName(std::string_view name);

}  // namespace sipi
