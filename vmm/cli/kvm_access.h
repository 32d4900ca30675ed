// What the command asks of KVM itself, before any run: limits, and the exit status of a KVM that
// cannot be used.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "vmm/base/exit_codes.h"
#include "vmm/cli/run_flags.h"
#include "vmm/kvm/kvm.h"

namespace sipi {

// The limits of the KVM behind `device`; where it cannot be used, CpuLimits' defaults: then the
// flags can still be checked, and the run itself says what is wrong with KVM.
CpuLimits HostCpuLimits(const std::string& device);

// The process's exit status for an error that let no guest run (docs/formats.md). Precondition: not
// OK.
ExitCode ExitCodeOf(const absl::Status& status);
ExitCode ExitCodeOf(KvmProblem problem);

}  // namespace sipi
