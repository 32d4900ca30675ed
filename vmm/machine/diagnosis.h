// How a run ended, in a word and in sentences.
#pragma once

#include <cstdint>
#include <string>

#include "guest/abi/percpu.h"
#include "vmm/machine/end_latch.h"
#include "vmm/timeline/run_record.h"

namespace sipi {

// Uses record.cpus.
Outcome OutcomeOf(const RunEnd& end, const abi::ResultPage& result, const RunRecord& record);

// Empty if all went well. Uses record.outcome and record.cpus with what they were doing.
std::string Diagnose(const RunEnd& end, const abi::ResultPage& result, int64_t time_limit_ms,
                     const RunRecord& record);

// What the guest did otherwise than it was asked to.
void AddNotes(const abi::ResultPage& result, RunRecord& record);

}  // namespace sipi
