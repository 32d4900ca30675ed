// The report of a payload's run for people.
#pragma once

#include <string>

#include "vmm/timeline/run_record.h"

namespace sipi {

// What ran, how it ended, when each AP got its INIT and SIPI and ran (from the host's side), the
// counters. Precondition: record.payload has a value.
std::string PayloadTable(const RunRecord& record);

}  // namespace sipi
