// What a configuration may not ask of an irqchip.
#pragma once

#include "absl/status/status.h"
#include "vmm/machine/run_config.h"

namespace sipi {

// "user", "split", "kernel".
const char* Name(IrqchipKind kind);

// Error (InvalidArgument) naming the flag and the remedy: a profile or a fault that only our own
// APIC can impose, together with one of KVM's; an order or a fault that names a CPU which is not
// there.
absl::Status CheckConfig(const RunConfig& config);

}  // namespace sipi
