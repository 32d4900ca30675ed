// From flags as typed to a checked RunConfig.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "vmm/cli/raw_flags.h"
#include "vmm/machine/run_config.h"

namespace sipi {

// How large a machine can be here. The defaults are the most that any KVM is built for (its x86
// limit is at most 4,096 vCPUs, IDs at most four times that): they stand in where KVM itself cannot
// be asked.
struct CpuLimits {
  uint32_t max_cpus = 4096;
  uint32_t max_apic_ids = 4 * 4096;  // IDs are below it
  uint32_t recommended_cpus = 4096;
  const char* whose = "host's";  // for messages
};

// The simulator's.
CpuLimits SimulatorCpuLimits();

struct CheckedConfig {
  RunConfig config;
  std::string note;  // worth telling the user: more CPUs than KVM recommends; else empty
};

// Checks every flag and returns what it asks for. Nothing of KVM is touched; files named by
// --profile and --order are read. `serial_fd` is left to the caller. Errors: InvalidArgument or
// NotFound, each naming flag and remedy.
absl::StatusOr<CheckedConfig> MakeRunConfig(const RawFlags& flags, const CpuLimits& limits);

}  // namespace sipi
