// `sipi rcu torture`: the verdict, the counters in lines like those of rcutorture, and
// `sipi.rcu-torture/1`.
#pragma once

#include <string>
#include <vector>

#include "vmm/timeline/run_record.h"

namespace sipi {

// Why the test failed, a line each; empty: it did not. A test that tested nothing (no reads, no
// updates, no grace period) has failed. Precondition of all here: record.services is there.
std::vector<std::string> TortureFailures(const RunRecord& record);

// Ends in "--- End of test: SUCCESS" or "FAILURE" and a newline.
std::string TortureText(const RunRecord& record);
std::string TortureJson(const RunRecord& record);

}  // namespace sipi
