// Where the guest's serial output goes: --serial=FILE|-|none.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "vmm/base/unique_fd.h"
#include "vmm/machine/run_config.h"

namespace sipi {

// One output for all runs of a command, in their order.
struct SerialOutput {
  UniqueFd fd;  // invalid: it goes nowhere

  // What the file held before: goes once there is a machine that writes there (RunConfig).
  bool holds_old_bytes = false;

  void Set(RunConfig& config) const {
    config.serial_fd = fd.get();
    config.empty_serial_file = holds_old_bytes;
  }
};

// Opens it, and leaves alone what is in it. `spec` empty stands for `fallback`; "-" is a duplicate
// of standard output, which is written on behind what is there. Errors name the flag and the file.
absl::StatusOr<SerialOutput> OpenSerial(const std::string& spec, const std::string& fallback);

}  // namespace sipi
