// How long a run may take where --time-limit-s does not say it.
#pragma once

#include <cstdint>
#include <string>

#include "vmm/cli/service_flags.h"
#include "vmm/machine/run_config.h"

namespace sipi {

// In ms. Virtual time costs nothing while nothing happens in it.
struct DefaultTimeLimit {
  int64_t kvm_ms = 0;
  int64_t simulated_ms = 0;
};

inline constexpr DefaultTimeLimit kBringUpTimeLimit = {60'000, 3'600'000};
// Scenarios that use the kernel's services; their own duration comes on top.
inline constexpr DefaultTimeLimit kServicesTimeLimit = {600'000, 1'000'000'000};

// Of a run of `config`, whose scenario uses the services.
int64_t ServicesTimeLimitMs(const RunConfig& config);

// The help of --time-limit-s: of a command that only brings CPUs up, and of those with services.
std::string BringUpTimeLimitHelp();
std::string TimeLimitHelp(ServiceUse use);

}  // namespace sipi
