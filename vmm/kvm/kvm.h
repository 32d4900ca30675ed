// /dev/kvm: opening it, telling why it cannot be used, and what it can do.
// Source: Linux Documentation/virt/kvm/api.rst ("KVM API" below), whose sections bear the names of
// the ioctls and capabilities named here.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "vmm/kvm/ioctl.h"
#include "vmm/kvm/linux_kvm.h"

namespace sipi {

// Why /dev/kvm cannot be used. Carried by the status of Kvm::Open, see KvmProblemOf.
enum class KvmProblem {
  kNone,          // the status is OK, or is not about opening KVM
  kMissing,       // no such file, or no driver behind it
  kNotPermitted,  // EACCES, EPERM
  kNotKvm,        // opens, but does not answer KVM_GET_API_VERSION (regular file, /dev/null)
  kWrongVersion,  // another API version than 12
  kBusy,          // EBUSY: another hypervisor holds the virtualisation extensions
  kOther,
};
const char* Name(KvmProblem problem);
KvmProblem KvmProblemOf(const absl::Status& status);

struct KvmOptions {
  std::string path = "/dev/kvm";
  std::shared_ptr<const IoctlHook> hook;  // tests only
};

// The facts about this host's KVM that do not change: asked once, at Open.
struct KvmFacts {
  uint32_t max_vcpus = 0;          // KVM_CAP_MAX_VCPUS
  uint32_t max_vcpu_ids = 0;       // KVM_CAP_MAX_VCPU_ID: IDs are below this
  uint32_t recommended_vcpus = 0;  // KVM_CAP_NR_VCPUS
  uint32_t vcpu_mmap_bytes = 0;    // KVM_GET_VCPU_MMAP_SIZE
  uint32_t sync_regs = 0;          // KVM_CAP_SYNC_REGS: bits KVM_SYNC_X86_*; 0: none
};

// Thread safe after Open, since constant.
class Kvm {
 public:
  // Errors carry a KvmProblem and name the path and the remedy.
  static absl::StatusOr<Kvm> Open(const KvmOptions& options = {});

  const KvmFacts& facts() const { return facts_; }

  // KVM_CHECK_EXTENSION: 0 if absent; what else it says depends on the capability.
  int CheckExtension(long capability) const;

  // KVM_GET_SUPPORTED_CPUID. Costs a CPUID instruction per entry: ask once per run.
  absl::StatusOr<std::vector<kvm_cpuid_entry2>> SupportedCpuid() const;

  const IoctlFd& device() const { return device_; }

 private:
  Kvm(IoctlFd device, const KvmFacts& facts) : device_(std::move(device)), facts_(facts) {}

  IoctlFd device_;
  KvmFacts facts_;
};

}  // namespace sipi
