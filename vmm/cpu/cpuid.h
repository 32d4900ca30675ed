// The CPUID table of each vCPU: KVM's supported table with the topology filled in.
//
// Built once per machine, then only patched per vCPU: KVM_GET_SUPPORTED_CPUID leaves the APIC IDs
// and the topology leaves (1, 4, 0BH, 1FH, 80000008H, 8000001DH, 8000001EH) to the VMM.
// Sources: SDM vol 2A, CPUID; SDM vol 3A, 9.9 "Programming Considerations for Hardware
// Multi-Threading Capable Processors"; AMD APM vol 3, appendix E.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "apic/regs/types.h"
#include "vmm/cpu/topology.h"
#include "vmm/kvm/linux_kvm.h"

namespace sipi {

struct CpuidOptions {
  bool x2apic = true;        // leaf 1 ECX bit 21
  bool tsc_deadline = true;  // leaf 1 ECX bit 24
  uint32_t tsc_khz = 0;  // leaf 40000010H EAX, as VMware and KVM guests read it; 0: no such leaf
};

// The IDs that a CPU whose firmware lies shows in CPUID. Some AMD parts come up with an APIC ID of
// initial ID + 10H, while CPUID shows the initial one; so the lie is the ID - 10H, or where that is
// below 0 the ID + 10H. It may be another CPU's ID: that is what makes such parts dangerous.
ApicId FirmwareLie(ApicId apic_id);

class CpuidTemplate {
 public:
  CpuidTemplate(std::span<const kvm_cpuid_entry2> supported, const Topology& topology,
                const CpuidOptions& options = {});

  // The table of a CPU of `topology`; with `shown`, every leaf shows that APIC ID instead of the
  // CPU's own. Any thread.
  std::vector<kvm_cpuid_entry2> ForCpu(CpuNumber cpu, std::optional<ApicId> shown = {}) const;

  // The part that all CPUs share, APIC IDs 0.
  const std::vector<kvm_cpuid_entry2>& entries() const { return entries_; }

 private:
  std::vector<kvm_cpuid_entry2> entries_;
  std::vector<CpuPlace> places_;
  uint32_t cores_per_die_ = 1;
};

// The entry of `leaf` and `subleaf` in a table, or null. For leaves without sub-leaves 0.
const kvm_cpuid_entry2* FindCpuid(std::span<const kvm_cpuid_entry2> table, uint32_t leaf,
                                  uint32_t subleaf = 0);

}  // namespace sipi
