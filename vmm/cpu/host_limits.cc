#include "vmm/cpu/host_limits.h"

#include "absl/strings/str_cat.h"
#include "vmm/base/status_macros.h"

namespace sipi {

absl::Status CheckCpuCount(uint64_t cpus, uint32_t max_vcpus) {
  if (cpus >= 1 && cpus <= max_vcpus) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(cpus, " CPUs, but this host's KVM allows 1 to ", max_vcpus,
                   " vCPUs in a VM (KVM_CAP_MAX_VCPUS); use --cpus in that range"));
}

absl::StatusOr<std::string> CheckHostLimits(const Topology& topology, uint32_t max_vcpus,
                                            uint32_t max_vcpu_ids, uint32_t recommended_vcpus) {
  const uint32_t cpus = topology.cpu_count();
  RETURN_IF_ERROR(CheckCpuCount(cpus, max_vcpus));
  const uint32_t highest = topology.max_apic_id().value;
  if (highest >= max_vcpu_ids) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the topology's highest APIC ID is ", highest, ", but this host's KVM allows IDs up to ",
        max_vcpu_ids - 1, " (KVM_CAP_MAX_VCPU_ID ", max_vcpu_ids,
        "); use a smaller stride, lower IDs or a topology with fewer gaps"));
  }
  if (cpus <= recommended_vcpus) return std::string();
  return absl::StrCat(cpus, " vCPUs are more than the ", recommended_vcpus,
                      " that KVM recommends on this host (KVM_CAP_NR_VCPUS); it works, but they "
                      "share the host's cores");
}

absl::Status CheckApicMode(const Topology& topology, abi::ApicMode mode) {
  constexpr uint32_t kHighestXApicId = 254;
  const uint32_t highest = topology.max_apic_id().value;
  if (mode != abi::ApicMode::kXApic || highest <= kHighestXApicId) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the highest APIC ID is ", highest, ", but xAPIC mode has 8-bit IDs up to ",
                   kHighestXApicId, "; use --apic=x2apic or at most 255 CPUs"));
}

}  // namespace sipi
