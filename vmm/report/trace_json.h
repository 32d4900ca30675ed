// A run as a trace that Perfetto (ui.perfetto.dev) and chrome://tracing open; documented in
// docs/formats.md.
#pragma once

#include <string>

#include "vmm/timeline/run_record.h"

namespace sipi {

// The "JSON object format" of the Trace Event Format: one process, one track per CPU and one for
// the VM. Spans are complete events ("X") only, and those of one track nest: a span that would
// cross another one's end is cut in parts there. Times are microseconds with three decimals, so no
// nanosecond is lost. Ends in a newline.
std::string TraceJson(const RunRecord& record);

}  // namespace sipi
