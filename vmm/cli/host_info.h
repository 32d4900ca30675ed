// What the host is: for results, so that a figure can be told from another machine's.
#pragma once

#include <string>
#include <vector>

#include "vmm/machine/run_config.h"
#include "vmm/timeline/run_record.h"

namespace sipi {

// Kernel, CPU model (CPUID leaves 0x80000002-4), usable cores, and the KVM module that drives the
// hardware. Costs some 100 us. `root` is put before /sys (tests).
HostInfo ReadHostInfo(const std::string& root = "");

// For a run's record. A simulated run has no host: its files are the same everywhere.
HostInfo HostInfoFor(MachineKind machine);

// The loaded modules that serve /dev/kvm ("kvm_amd", "kvm_intel", ...), sorted; from /sys/module,
// which also has those that are built into the kernel.
std::vector<std::string> KvmModules(const std::string& root = "");

// Whether this CPU shows VMX or SVM (CPUID.1:ECX[5], CPUID.80000001H:ECX[2]). Without it KVM needs
// a module that brings its own way, and the guest's ring 0 code is emulated.
bool HostHasHardwareVirtualisation();
// What that means for the figures, as `sipi doctor` and the scenarios' reports say it.
inline constexpr char kEmulationNote[] =
    "the processor shows no VMX or SVM, so this KVM brings its own way and may emulate the guest's "
    "kernel code: expect that code to be hundreds of times slower; latencies of host and devices "
    "are real";

// "AuthenticAMD", "GenuineIntel", ...
std::string CpuVendor();

}  // namespace sipi
