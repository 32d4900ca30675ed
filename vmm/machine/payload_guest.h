// Other people's guests on a machine: loading, entering, and loading again when firmware is asked.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "vmm/load/payload.h"
#include "vmm/machine/machine.h"
#include "vmm/machine/run_config.h"

namespace sipi {

// RAM of a payload's machine unless --memory says otherwise.
inline constexpr uint64_t kPayloadRamBytes = uint64_t{128} << 20;
inline constexpr uint64_t kLeastPayloadRamBytes = uint64_t{1} << 20;  // firmware lies at its end

// The RAM that `config` asks for. Error: InvalidArgument if --memory is too small for any payload.
absl::StatusOr<uint64_t> PayloadRamBytes(const RunConfig& config);

// Gives `machine` its memory, firmware and boot state. Precondition: config.payload has a value and
// the machine a board. Errors: those of reading and loading the file, which they name.
absl::StatusOr<PayloadKind> LoadPayloadGuest(const RunConfig& config, Machine& machine);

}  // namespace sipi
