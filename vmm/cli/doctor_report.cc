#include "vmm/cli/doctor_report.h"

#include <linux/kvm.h>
#include <sys/resource.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "vmm/base/limits.h"
#include "vmm/cli/host_info.h"

namespace sipi {
namespace {

std::string Good(const std::string& text) { return absl::StrCat("  [ok]   ", text, "\n"); }
std::string Lost(const std::string& text) { return absl::StrCat("  [lost] ", text, "\n"); }
std::string Note(const std::string& text) { return absl::StrCat("  [note] ", text, "\n"); }

struct Capability {
  long number;
  const char* name;
  const char* loss;  // what does not work without it
};

constexpr Capability kCapabilities[] = {
    {KVM_CAP_USER_MEMORY, "KVM_CAP_USER_MEMORY", "everything: no guest memory"},
    {KVM_CAP_EXT_CPUID, "KVM_CAP_EXT_CPUID", "everything: the vCPUs' topology cannot be set"},
    {KVM_CAP_X86_USER_SPACE_MSR, "KVM_CAP_X86_USER_SPACE_MSR",
     "--irqchip=user with --apic=x2apic (use --apic=xapic or another irqchip)"},
    {KVM_CAP_IRQCHIP, "KVM_CAP_IRQCHIP", "--irqchip=kernel and split"},
    {KVM_CAP_SPLIT_IRQCHIP, "KVM_CAP_SPLIT_IRQCHIP", "--irqchip=split"},
    {KVM_CAP_X2APIC_API, "KVM_CAP_X2APIC_API",
     "APIC IDs above 254 with --irqchip=kernel and split"},
    {KVM_CAP_MP_STATE, "KVM_CAP_MP_STATE",
     "--irqchip=kernel and split: APs could not be told from the boot CPU"},
    {KVM_CAP_TSC_DEADLINE_TIMER, "KVM_CAP_TSC_DEADLINE_TIMER",
     "the TSC-deadline timer with KVM's local APIC"},
    {KVM_CAP_IMMEDIATE_EXIT, "KVM_CAP_IMMEDIATE_EXIT", "a clean stop of running vCPUs"},
    {KVM_CAP_SYNC_REGS, "KVM_CAP_SYNC_REGS", "some speed: registers cost an ioctl per exit"},
    {KVM_CAP_GET_TSC_KHZ, "KVM_CAP_GET_TSC_KHZ", "the timeline's clock"},
    {KVM_CAP_BINARY_STATS_FD, "KVM_CAP_BINARY_STATS_FD", "--count-instructions"},
};

std::string CapabilityLines(const Kvm& kvm) {
  std::string out;
  std::string present;
  for (const Capability& capability : kCapabilities) {
    if (kvm.CheckExtension(capability.number) > 0) {
      const std::string name = capability.name;
      absl::StrAppend(&present, present.empty() ? "" : ", ", name.substr(name.find("CAP_") + 4));
    } else {
      out += Lost(absl::StrCat(capability.name, " is missing; without it: ", capability.loss));
    }
  }
  return Good("capabilities: " + present) + out;
}

std::string IrqchipLine(const Kvm& kvm) {
  std::string works = "user (sipi's own local APIC)";
  if (kvm.CheckExtension(KVM_CAP_IRQCHIP) > 0) {
    if (kvm.CheckExtension(KVM_CAP_SPLIT_IRQCHIP) > 0) works += ", split";
    works += ", kernel";
  }
  return Good("--irqchip: " + works);
}

std::string OpenFilesLine(uint64_t cpus) {
  const uint64_t needed = OpenFilesForVcpus(cpus);
  rlimit limit = {};
  if (HostOpenFileLimit().get(limit) != 0) return Note("the limit of open files cannot be read");
  if (limit.rlim_max >= needed) {
    return Good(absl::StrCat(
        "open files: ", needed, " needed for ", cpus, " vCPUs, up to ", limit.rlim_max, " allowed",
        limit.rlim_cur < needed ? " (sipi raises its soft limit itself)" : ""));
  }
  return Lost(absl::StrCat("open files: ", needed, " needed for ", cpus,
                           " vCPUs, the hard limit is ", limit.rlim_max,
                           "; raise it (ulimit -Hn, /etc/security/limits.conf)"));
}

std::string ThreadsLine(uint64_t cpus) {
  const std::vector<ThreadLimit> limits = ReadThreadLimits();
  const absl::Status enough = CheckThreads(cpus + 2, limits);
  if (!enough.ok()) return Lost(absl::StrCat("threads: ", std::string(enough.message())));
  return Good(absl::StrCat("threads: ", cpus, " more may be started"));
}

}  // namespace

std::string DoctorHostSection() {
  const HostInfo host = ReadHostInfo();
  return absl::StrCat("Host\n", "  kernel      ", host.kernel, "\n", "  processor   ", host.cpu,
                      " (", CpuVendor(), "), ", host.cores, host.cores == 1 ? " core" : " cores",
                      "\n", "  KVM module  ",
                      host.kvm_module.empty() ? "none is loaded" : host.kvm_module, "\n\n");
}

std::string DoctorKvmSection(const Kvm& kvm, const std::string& device) {
  const KvmFacts& facts = kvm.facts();
  std::string out = "KVM can be used\n";
  out += Good(absl::StrCat(device, " may be opened, API version ", KVM_API_VERSION));
  out += Good(absl::StrCat("vCPUs: up to ", facts.max_vcpus, " (", facts.recommended_vcpus,
                           " recommended: more works, they share the cores), APIC IDs up to ",
                           facts.max_vcpu_ids - 1));
  out += IrqchipLine(kvm);
  out += CapabilityLines(kvm);
  out += OpenFilesLine(facts.max_vcpus);
  out += ThreadsLine(facts.max_vcpus);
  if (!HostHasHardwareVirtualisation()) out += Note(kEmulationNote);
  return out + "\nTry: sipi compare --cpus=32\n";
}

}  // namespace sipi
