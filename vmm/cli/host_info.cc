#include "vmm/cli/host_info.h"

#include <cpuid.h>
#include <dirent.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace sipi {
namespace {

struct CpuidRegisters {
  uint32_t eax = 0;
  uint32_t ebx = 0;
  uint32_t ecx = 0;
  uint32_t edx = 0;
};

// All zero for a leaf that the CPU does not have.
CpuidRegisters Cpuid(uint32_t leaf) {
  CpuidRegisters r;
  __get_cpuid(leaf, &r.eax, &r.ebx, &r.ecx, &r.edx);
  return r;
}

std::string CpuModel() {
  std::string name;
  for (uint32_t leaf = 0x80000002; leaf <= 0x80000004; ++leaf) {
    const CpuidRegisters r = Cpuid(leaf);
    std::array<char, sizeof(r)> text;
    std::memcpy(text.data(), &r, sizeof(r));
    name.append(text.data(), text.size());
  }
  name.resize(std::min(name.size(), name.find('\0')));
  const size_t begin = name.find_first_not_of(' ');
  if (begin == std::string::npos) return CpuVendor();
  return name.substr(begin, name.find_last_not_of(' ') - begin + 1);
}

// Cores that this process may use.
uint32_t UsableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return static_cast<uint32_t>(CPU_COUNT(&set));
  // More CPUs than a cpu_set_t holds.
  return static_cast<uint32_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace

std::string CpuVendor() {
  const CpuidRegisters r = Cpuid(0);
  const std::array<uint32_t, 3> words = {r.ebx, r.edx, r.ecx};
  std::string name(sizeof(words), '\0');
  std::memcpy(name.data(), words.data(), sizeof(words));
  return name;
}

bool HostHasHardwareVirtualisation() {
  constexpr uint32_t kVmx = 1u << 5;
  constexpr uint32_t kSvm = 1u << 2;
  return (Cpuid(1).ecx & kVmx) != 0 || (Cpuid(0x80000001).ecx & kSvm) != 0;
}

std::vector<std::string> KvmModules(const std::string& root) {
  std::vector<std::string> modules;
  DIR* dir = opendir((root + "/sys/module").c_str());
  if (dir == nullptr) return modules;
  while (const dirent* entry = readdir(dir)) {
    const std::string name = entry->d_name;
    if (name.rfind("kvm_", 0) == 0) modules.push_back(name);
  }
  closedir(dir);
  std::sort(modules.begin(), modules.end());
  return modules;
}

HostInfo ReadHostInfo(const std::string& root) {
  HostInfo host;
  for (const std::string& module : KvmModules(root)) {
    if (!host.kvm_module.empty()) host.kvm_module += ",";
    host.kvm_module += module;
  }
  host.cpu = CpuModel();
  host.cores = UsableCores();
  utsname names = {};
  if (uname(&names) == 0) host.kernel = names.release;
  return host;
}

HostInfo HostInfoFor(MachineKind machine) {
  return machine == MachineKind::kSim ? HostInfo() : ReadHostInfo();
}

}  // namespace sipi
