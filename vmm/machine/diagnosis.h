// How a run ended, in a word and in sentences.
#pragma once

#include <cstdint>
#include <string>

#include "guest/abi/percpu.h"
#include "vmm/device/output_stage.h"
#include "vmm/machine/end_latch.h"
#include "vmm/timeline/run_record.h"

namespace sipi {

// Of a guest whose own status nobody knows: its exit is its business.
Outcome OutcomeOf(EndKind kind);

// Of our own guest. Uses record.cpus.
Outcome OutcomeOf(const RunEnd& end, const abi::ResultPage& result, const RunRecord& record);

// Empty if all went well. Uses record.outcome and record.cpus with what they were doing.
std::string Diagnose(const RunEnd& end, const abi::ResultPage& result, int64_t time_limit_ms,
                     const RunRecord& record);

// What became of its serial output, if not all of it was written: a note where the reader is gone
// or too slow; a failure, and part of the diagnosis, where it could not be.
void AddSerial(const OutputSummary& serial, RunRecord& record);

// What the guest did otherwise than it was asked to.
void AddNotes(const abi::ResultPage& result, RunRecord& record);

}  // namespace sipi
