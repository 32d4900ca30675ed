// The record of a payload's run: what the host saw, since the guest keeps no rings.
#pragma once

#include "vmm/load/payload.h"
#include "vmm/machine/machine.h"
#include "vmm/machine/run_config.h"
#include "vmm/timeline/run_record.h"

namespace sipi {

// After the run. A CPU counts as online if it has executed anything.
RunRecord BuildPayloadRecord(const RunConfig& config, PayloadKind kind, const RunEnd& end,
                             Machine& machine);

}  // namespace sipi
