// --steal=PERIOD:MIN:MAX.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "vmm/machine/run_config.h"

namespace sipi {

// Whole milliseconds from 1 to 60,000, MIN not above MAX. Errors: InvalidArgument naming `flag` and
// the remedy.
absl::StatusOr<StealConfig> ParseSteal(const std::string& flag, const std::string& text);

}  // namespace sipi
