// The short report of one run, for people.
#pragma once

#include <string>
#include <vector>

#include "vmm/timeline/run_record.h"

namespace sipi {

// Outcome, smpboot time, phases, counters, CPUs that are missing (by number, with what they were
// doing), notes. Lines end in newlines. Every time is computed from record.events.
std::string RunTable(const RunRecord& record);

// "0-3,5,9-11": for lists of CPUs.
std::string CpuRanges(const std::vector<uint32_t>& ascending);

}  // namespace sipi
