// Faults by name: --fault=KIND@CPU[:VALUE].
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "guest/abi/boot_params.h"

namespace sipi {

std::vector<std::string> FaultNames();

// Reads KIND@CPU[:VALUE]; VALUE is milliseconds for `late`, the number or the name of a cpuhp state
// for `fail-step`. `halt-all` concerns every CPU and may leave @CPU out. Faults of an INIT or SIPI
// need an AP (CPU 1 or higher). Errors: InvalidArgument naming the flag and the remedy.
absl::StatusOr<abi::FaultSpec> ParseFault(const std::string& text, uint32_t cpus);

// --firmware-lies=CPU[,CPU]: APs, each once. Errors likewise.
absl::StatusOr<std::vector<uint32_t>> ParseFirmwareLies(const std::string& text, uint32_t cpus);

}  // namespace sipi
