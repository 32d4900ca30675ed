// Puts guest.elf, its boot parameters and the PVH start info into a machine's memory.
#pragma once

#include "absl/status/statusor.h"
#include "vmm/load/params.h"
#include "vmm/machine/machine.h"
#include "vmm/machine/run_config.h"

namespace sipi {

// Gives `machine` its memory and its boot CPU's state. Returns where the shared areas are. Errors:
// InvalidArgument if --memory is too small, with both numbers; those of the loaders.
absl::StatusOr<ArenaLayout> LoadGuest(const RunConfig& config, Machine& machine);

// Host-driven bring-up of the guest that LoadGuest has loaded.
absl::StatusOr<HostSequence> SequenceFor(const RunConfig& config, const ArenaLayout& arena,
                                         const GuestMemory& memory);

}  // namespace sipi
