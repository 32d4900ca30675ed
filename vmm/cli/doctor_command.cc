// `sipi doctor`: whether and how KVM can be used here, in plain words.
#include "vmm/cli/commands.h"
#include "vmm/cli/doctor_report.h"
#include "vmm/cli/kvm_access.h"
#include "vmm/cli/messages.h"
#include "vmm/kvm/kvm.h"

namespace sipi {

int DoctorCommand(const std::string& kvm_device) {
  KvmOptions options;
  options.path = kvm_device;
  const absl::StatusOr<Kvm> kvm = Kvm::Open(options);
  if (!kvm.ok()) {
    const bool printed = Print(DoctorHostSection() + DoctorKvmFailure(kvm.status(), kvm_device));
    return static_cast<int>(printed ? ExitCodeOf(kvm.status()) : ExitCode::kError);
  }
  const bool printed = Print(DoctorHostSection() + DoctorKvmSection(*kvm, kvm_device));
  return static_cast<int>(printed ? ExitCode::kOk : ExitCode::kError);
}

}  // namespace sipi
