// Checks the flags of the kernel beyond bring-up (service_flags.h).
#pragma once

#include "absl/status/status.h"
#include "guest/abi/scenario.h"
#include "vmm/cli/service_flags.h"

namespace sipi {

// What was not given stays as it is in `knobs`. Errors: InvalidArgument, naming flag and remedy.
absl::Status SetKernelKnobs(const RawServices& raw, abi::KernelKnobs& knobs);

}  // namespace sipi
