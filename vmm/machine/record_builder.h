// Builds the record of a run that is over: from the machine, and from what the guest left in its
// memory. The guest's memory is read with suspicion: a guest may have gone wild.
#pragma once

#include "absl/status/statusor.h"
#include "vmm/load/params.h"
#include "vmm/machine/machine.h"
#include "vmm/machine/run_config.h"
#include "vmm/timeline/run_record.h"

namespace sipi {

// After machine.Run. RunRecord::host stays empty: the caller knows the host. Errors: OutOfRange if
// `arena` is not in the machine's memory.
absl::StatusOr<RunRecord> BuildRecord(const RunConfig& config, const ArenaLayout& arena,
                                      const RunEnd& end, Machine& machine);

}  // namespace sipi
