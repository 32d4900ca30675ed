// A run on the simulator: the same RunConfig, the same RunRecord.
#pragma once

#include "absl/status/statusor.h"
#include "vmm/machine/run.h"

namespace sipi {

// As RunMachine, which calls it for MachineKind::kSim. The record depends on `config` alone: the
// same bytes on every host. Errors: what the simulator has no part for (host-driven bring-up, KVM's
// irqchips), and ResourceExhausted if the host has no address space for so many CPUs.
absl::StatusOr<RunRecord> RunSimulated(const RunConfig& config, StopRequest& stop);

// The most CPUs that it takes: CPU numbers in the timeline have 16 bits, and a stack's guard page
// takes two entries of the process's memory map (vm.max_map_count, 65,530 unless raised).
inline constexpr uint32_t kMaxSimulatedCpus = 32'000;

}  // namespace sipi
