#include "vmm/kvm/kvm.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "vmm/base/errno_status.h"
#include "vmm/base/status_macros.h"
#include "vmm/kvm/cpuid_buffer.h"

namespace sipi {
namespace {

constexpr char kProblemUrl[] = "sipi/kvm-problem";

absl::Status WithProblem(absl::Status status, KvmProblem problem) {
  status.SetPayload(kProblemUrl, absl::Cord(Name(problem)));
  return status;
}

absl::Status OpenFailed(int error, const std::string& path) {
  const std::string what = absl::StrCat("open ", path);
  switch (error) {
    case ENOENT:
    case ENXIO:
    case ENODEV:
    case ENOTDIR:
      return WithProblem(
          ErrnoStatus(error, what,
                      "load KVM (modprobe kvm_intel or kvm_amd) and switch on VT-x or AMD-V in the "
                      "firmware, or nested virtualisation if this is a virtual machine; in a "
                      "container pass the device (--device /dev/kvm)"),
          KvmProblem::kMissing);
    case EACCES:
    case EPERM:
      return WithProblem(
          ErrnoStatus(error, what,
                      "join the device's group (sudo usermod -aG kvm $USER, then log in again) or "
                      "run as root"),
          KvmProblem::kNotPermitted);
    case EBUSY:
      return WithProblem(
          ErrnoStatus(error, what, "stop the other hypervisor that uses the processor"),
          KvmProblem::kBusy);
    default:
      return WithProblem(ErrnoStatus(error, what), KvmProblem::kOther);
  }
}

absl::Status CheckVersion(const IoctlFd& device, const std::string& path) {
  const int version = device.Call(KVM_GET_API_VERSION);
  if (version == KVM_API_VERSION) return absl::OkStatus();
  if (version >= 0) {
    return WithProblem(
        absl::FailedPreconditionError(absl::StrCat(
            "KVM_GET_API_VERSION on ", path, " says ", version, ", but this program speaks ",
            KVM_API_VERSION, "; use a kernel of Linux 2.6.22 or later")),
        KvmProblem::kWrongVersion);
  }
  return WithProblem(
      ErrnoStatus(
          errno, absl::StrCat(path, " is not KVM's device: KVM_GET_API_VERSION"),
          "remove it and make the device anew (mknod /dev/kvm c 10 232, or let udev do it)"),
      KvmProblem::kNotKvm);
}

}  // namespace

const char* Name(KvmProblem problem) {
  switch (problem) {
    case KvmProblem::kNone:
      return "none";
    case KvmProblem::kMissing:
      return "missing";
    case KvmProblem::kNotPermitted:
      return "not-permitted";
    case KvmProblem::kNotKvm:
      return "not-kvm";
    case KvmProblem::kWrongVersion:
      return "wrong-version";
    case KvmProblem::kBusy:
      return "busy";
    case KvmProblem::kOther:
      return "other";
  }
  return "?";
}

KvmProblem KvmProblemOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kProblemUrl);
  if (!payload.has_value()) return KvmProblem::kNone;
  for (const KvmProblem problem :
       {KvmProblem::kMissing, KvmProblem::kNotPermitted, KvmProblem::kNotKvm,
        KvmProblem::kWrongVersion, KvmProblem::kBusy}) {
    if (*payload == Name(problem)) return problem;
  }
  return KvmProblem::kOther;
}

absl::StatusOr<Kvm> Kvm::Open(const KvmOptions& options) {
  UniqueFd fd(open(options.path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd.valid()) return OpenFailed(errno, options.path);
  IoctlFd device(std::move(fd), options.hook);
  RETURN_IF_ERROR(CheckVersion(device, options.path));

  Kvm kvm(std::move(device), KvmFacts());
  const int mmap_bytes = kvm.device_.Call(KVM_GET_VCPU_MMAP_SIZE);
  if (mmap_bytes < 0) {
    return WithProblem(ErrnoStatus(errno, "KVM_GET_VCPU_MMAP_SIZE"), KvmProblem::kOther);
  }
  const auto count = [&kvm](long capability) {
    return static_cast<uint32_t>(std::max(0, kvm.CheckExtension(capability)));
  };
  KvmFacts& facts = kvm.facts_;
  facts.vcpu_mmap_bytes = static_cast<uint32_t>(mmap_bytes);
  // What to assume where a capability is missing: KVM API, KVM_CREATE_VCPU.
  facts.recommended_vcpus = std::max(count(KVM_CAP_NR_VCPUS), 1u);
  facts.max_vcpus = std::max(count(KVM_CAP_MAX_VCPUS), facts.recommended_vcpus);
  facts.max_vcpu_ids = std::max(count(KVM_CAP_MAX_VCPU_ID), facts.max_vcpus);
  facts.sync_regs = count(KVM_CAP_SYNC_REGS);
  return kvm;
}

int Kvm::CheckExtension(long capability) const {
  return std::max(0, device_.Call(KVM_CHECK_EXTENSION, static_cast<uint64_t>(capability)));
}

absl::StatusOr<std::vector<kvm_cpuid_entry2>> Kvm::SupportedCpuid() const {
  CpuidBuffer buffer;
  buffer.header.nent = kMaxCpuidEntries;
  if (device_.Call(KVM_GET_SUPPORTED_CPUID, &buffer) < 0) {
    return ErrnoStatus(errno, "KVM_GET_SUPPORTED_CPUID");
  }
  return std::vector<kvm_cpuid_entry2>(buffer.entries, buffer.entries + buffer.header.nent);
}

}  // namespace sipi
