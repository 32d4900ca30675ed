// Writes a result file whole, or not at all.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace sipi {

// Whether the errors' remedy may name standard output: not where a flag refuses it.
enum class StandardOutput { kTaken, kRefused };

// Writes `content` to a new file beside `path` and renames it over `path`, so that nobody ever sees
// half a file and a failure leaves an old one as it was. "-" and "/dev/stdout" are standard output.
// What exists and is no regular file (a device, a pipe) is written to directly; a symbolic link is
// followed. A slow reader is waited for. Errors name the file, and `flag` ("--json") if it is not
// empty. The process must ignore SIGPIPE. Any thread.
absl::Status WriteResultFile(const std::string& path, std::string_view content,
                             std::string_view flag = "",
                             StandardOutput standard_output = StandardOutput::kTaken);

// Whether WriteResultFile would find a place to write: to be asked before a long run. Changes
// nothing. Errors as there.
absl::Status CheckResultFile(const std::string& path, std::string_view flag = "",
                             StandardOutput standard_output = StandardOutput::kTaken);

}  // namespace sipi
