// Where the guest's serial output goes: --serial=FILE|-|none.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "vmm/base/unique_fd.h"

namespace sipi {

// Opens it. `spec` empty stands for `fallback`. An invalid descriptor means nowhere; "-" is a
// duplicate of standard output. Errors name the flag and the file.
absl::StatusOr<UniqueFd> OpenSerial(const std::string& spec, const std::string& fallback);

}  // namespace sipi
