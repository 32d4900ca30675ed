// CPUs that went off and on, for the report of `sipi run`.
#pragma once

#include <string>

#include "vmm/timeline/run_record.h"

namespace sipi {

// A blank line, then a row for each direction: operations, failures, times, until the locks are
// held, and the grace periods that were waited for per operation. Empty if no CPU went.
std::string HotplugTable(const RunRecord& record);

// No operation failed, none lacks its end, and no event of them can be missing.
bool HotplugComplete(const RunRecord& record);

}  // namespace sipi
