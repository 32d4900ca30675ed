// struct kvm_cpuid2 with room for its entries, as KVM_GET_SUPPORTED_CPUID and KVM_SET_CPUID2 want
// it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vmm/kvm/linux_kvm.h"

namespace sipi {

inline constexpr uint32_t kMaxCpuidEntries = 256;  // KVM_MAX_CPUID_ENTRIES, arch/x86/kvm/cpuid.h

struct CpuidBuffer {
  struct Header {
    uint32_t nent = 0;
    uint32_t padding = 0;
  } header;
  kvm_cpuid_entry2 entries[kMaxCpuidEntries];
};
static_assert(offsetof(CpuidBuffer, entries) == sizeof(kvm_cpuid2));
static_assert(sizeof(kvm_cpuid2) == 8, "include vmm/kvm/linux_kvm.h before <linux/kvm.h>");

}  // namespace sipi
