// Other people's guests on a machine: loading, entering, and loading again when firmware is asked.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "vmm/load/payload.h"
#include "vmm/machine/machine.h"
#include "vmm/machine/run_config.h"
#include "vmm/memory/guest_memory.h"

namespace sipi {

// RAM of a payload's machine unless --memory says otherwise.
inline constexpr uint64_t kPayloadRamBytes = uint64_t{128} << 20;
inline constexpr uint64_t kLeastPayloadRamBytes = uint64_t{1} << 20;  // firmware lies at its end

// The RAM that `config` asks for. Error: InvalidArgument if --memory is too small for any payload.
absl::StatusOr<uint64_t> PayloadRamBytes(const RunConfig& config);

// A payload in its machine's memory, before there is a machine.
struct PreparedPayload {
  GuestMemory memory;
  LoadedPayload loaded;
  // Loads it into that memory once more.
  std::function<absl::StatusOr<LoadedPayload>(const GuestMemory&)> load_again;
};

// Reads and loads the file; needs no KVM. Precondition: config.payload has a value. Errors:
// InvalidArgument naming --payload and the file if it cannot be read, is no image or does not fit;
// ResourceExhausted if the host has no such memory.
absl::StatusOr<PreparedPayload> PreparePayload(const RunConfig& config);

// Gives `machine`, which has a board, its memory, firmware and boot state.
absl::Status InstallPayload(PreparedPayload payload, Machine& machine);

}  // namespace sipi
