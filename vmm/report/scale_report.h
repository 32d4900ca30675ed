// `sipi rcu scale`: the lines of rcuscale, then what its evaluation script computes from them, and
// `sipi.rcu-scale/1`.
#pragma once

#include <string>

#include "vmm/timeline/run_record.h"
#include "vmm/timeline/service_analysis.h"

namespace sipi {

// The run ended, every writer has the measurements asked for, and no event was lost. Precondition
// of all here: record.services is there.
bool ScaleComplete(const RunRecord& record, const ScaleResult& result);

// `durations`: also a line for each measurement. What is missing is said in lines with rcuscale's
// mark for errors, "!!!".
std::string ScaleText(const RunRecord& record, bool durations);
std::string ScaleJson(const RunRecord& record);

}  // namespace sipi
