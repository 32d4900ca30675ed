// What `sipi doctor` says where KVM cannot be used.
#include <sys/stat.h>
#include <unistd.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "vmm/cli/doctor_report.h"
#include "vmm/cli/host_info.h"

namespace sipi {
namespace {

std::string Step(const std::string& text) { return absl::StrCat("  [do]   ", text, "\n"); }

constexpr char kContainer[] = "in a container: pass the device, --device /dev/kvm";

std::string HowToGetTheDriver() {
  const bool intel = CpuVendor() == "GenuineIntel";
  if (!HostHasHardwareVirtualisation()) {
    return Step(
        "the processor shows no VMX or SVM: in a virtual machine ask for nested virtualisation; on "
        "bare metal switch it on in the firmware's set-up");
  }
  return Step(absl::StrCat("load the driver: sudo modprobe ", intel ? "kvm_intel" : "kvm_amd")) +
         Step(absl::StrCat("if that fails, switch on ", intel ? "VT-x" : "SVM (AMD-V)",
                           " in the firmware's set-up"));
}

std::string HowToMakeTheDevice(const std::string& device) {
  return Step(absl::StrCat("make the device file: sudo mknod ", device,
                           " c 10 232; sudo chgrp kvm ", device, "; sudo chmod 660 ", device));
}

std::string HowToGetKvm(const std::string& device) {
  const std::vector<std::string> modules = KvmModules();
  if (modules.empty()) return HowToGetTheDriver() + Step(kContainer);
  return absl::StrCat("  [ok]   the driver ", modules[0],
                      " is there (no modprobe needed), only its device file is missing\n") +
         Step(kContainer) + HowToMakeTheDevice(device);
}

std::string HowToGetPermission(const std::string& device) {
  struct stat info = {};
  if (stat(device.c_str(), &info) != 0) return "";
  constexpr mode_t kGroupReadWrite = 060;
  const bool group_may = (info.st_mode & kGroupReadWrite) == kGroupReadWrite && info.st_gid != 0;
  std::string out =
      absl::StrFormat("  [note] you are user %d; %s belongs to user %d and group %d, mode %04o\n",
                      geteuid(), device, info.st_uid, info.st_gid, info.st_mode & 07777u);
  if (!group_may) {
    out += Step(absl::StrCat("let the group kvm use it: sudo chgrp kvm ", device,
                             "; sudo chmod 660 ", device));
  }
  out += Step("join the group: sudo usermod -aG kvm $USER, then log in again; or run as root");
  return out + Step(kContainer);
}

std::string Remedies(KvmProblem problem, const std::string& device) {
  switch (problem) {
    case KvmProblem::kMissing:
      return HowToGetKvm(device);
    case KvmProblem::kNotPermitted:
      return HowToGetPermission(device);
    case KvmProblem::kNotKvm:
      return Step(absl::StrCat("remove what is in its place: sudo rm ", device)) +
             HowToMakeTheDevice(device);
    case KvmProblem::kWrongVersion:
      return Step("every Linux since 2.6.22 (2007) speaks version 12: use such a kernel");
    case KvmProblem::kBusy:
      return Step("another hypervisor holds the processor's virtualisation: stop it");
    case KvmProblem::kNone:
    case KvmProblem::kOther:
      break;
  }
  return "";
}

}  // namespace

std::string DoctorKvmFailure(const absl::Status& status, const std::string& device) {
  // The status ends in a short remedy of its own, for the commands that print one line only.
  const std::string message(status.message());
  return absl::StrCat("KVM cannot be used\n  [bad]  ", message.substr(0, message.find(';')), "\n",
                      Remedies(KvmProblemOf(status), device),
                      "\nsipi needs KVM to boot machines; sipi --help and the unit tests work "
                      "without.\n");
}

}  // namespace sipi
