// `sipi rcu ref` and `sipi rcu callrcu`: text and JSON (`sipi.rcu-ref/1`, `sipi.rcu-callrcu/1`).
#pragma once

#include <string>
#include <vector>

#include "vmm/timeline/run_record.h"

namespace sipi {

// Every round that was asked for has its point. Precondition of all here: record.services is there.
bool RefComplete(const RunRecord& record);
// One line a point, then what refscale's evaluation script computes.
std::string RefText(const RunRecord& record);
std::string RefJson(const RunRecord& record);

// The run ended and every callback that was queued has run.
bool CallRcuComplete(const RunRecord& record);
// One row per run, by pinning.
std::string CallRcuTable(const std::vector<RunRecord>& records);
std::string CallRcuJson(const std::vector<RunRecord>& records);

}  // namespace sipi
