#include "vmm/cli/kvm_access.h"

namespace sipi {

CpuLimits HostCpuLimits(const std::string& device) {
  KvmOptions options;
  options.path = device;
  const absl::StatusOr<Kvm> kvm = Kvm::Open(options);
  CpuLimits limits;
  if (!kvm.ok()) return limits;
  limits.max_cpus = kvm->facts().max_vcpus;
  limits.max_apic_ids = kvm->facts().max_vcpu_ids;
  limits.recommended_cpus = kvm->facts().recommended_vcpus;
  return limits;
}

ExitCode ExitCodeOf(KvmProblem problem) {
  switch (problem) {
    case KvmProblem::kMissing:
      return ExitCode::kKvmMissing;
    case KvmProblem::kNotPermitted:
      return ExitCode::kKvmNotPermitted;
    case KvmProblem::kNotKvm:
      return ExitCode::kKvmNotADevice;
    case KvmProblem::kWrongVersion:
      return ExitCode::kKvmWrongVersion;
    case KvmProblem::kNone:
    case KvmProblem::kBusy:
    case KvmProblem::kOther:
      break;
  }
  return ExitCode::kError;
}

ExitCode ExitCodeOf(const absl::Status& status) {
  const ExitCode kvm = ExitCodeOf(KvmProblemOf(status));
  if (kvm != ExitCode::kError) return kvm;
  return absl::IsInvalidArgument(status) ? ExitCode::kUsage : ExitCode::kError;
}

}  // namespace sipi
