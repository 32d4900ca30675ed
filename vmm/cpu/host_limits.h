// Whether this host's KVM can make the CPUs of a topology. Asked before any VM is made.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "guest/abi/boot_params.h"
#include "vmm/cpu/topology.h"

namespace sipi {

// Error (InvalidArgument) unless 1 <= cpus <= max_vcpus, naming the limit and its value. For use
// before a topology of so many CPUs is made.
absl::Status CheckCpuCount(uint64_t cpus, uint32_t max_vcpus);

// Error (InvalidArgument) naming the limit, count or APIC ID, with its value: more than `max_vcpus`
// CPUs, or an APIC ID not below `max_vcpu_ids` (KVM_CAP_MAX_VCPU_ID). Otherwise a note for the
// user, empty unless there are more CPUs than KVM recommends.
absl::StatusOr<std::string> CheckHostLimits(const Topology& topology, uint32_t max_vcpus,
                                            uint32_t max_vcpu_ids, uint32_t recommended_vcpus);

// Error (InvalidArgument) if `mode` is xAPIC and an APIC ID is above 254: it has 8 bits, and 255
// means all (SDM vol 3A, 11.6.2.1).
absl::Status CheckApicMode(const Topology& topology, abi::ApicMode mode);

}  // namespace sipi
