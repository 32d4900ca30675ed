// `sipi.run/1`: one run as JSON, documented in docs/formats.md, and the way back.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "vmm/timeline/run_record.h"

namespace sipi {

// Ends in a newline. Bytes in strings that are no UTF-8 are replaced by U+FFFD.
std::string RunJson(const RunRecord& record);

// Reads what RunJson wrote. Computed figures (smpboot_ns, phases_ns, times of CPUs) are not read:
// Analyze() gives them again. Unknown keys are ignored, as later versions may add some. `origin`
// names the text in errors. Errors: InvalidArgument naming origin and key, or the byte where the
// syntax ends.
absl::StatusOr<RunRecord> ParseRunJson(std::string_view text, std::string_view origin);

// The same from a file of at most 1 GiB. Errors: also those of opening and reading, naming the
// file.
absl::StatusOr<RunRecord> ReadRunJson(const std::string& path);

}  // namespace sipi
