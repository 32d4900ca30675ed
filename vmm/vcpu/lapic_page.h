// Between KVM's form of a local APIC's registers and the model's. Source: KVM API, KVM_GET_LAPIC.
#pragma once

#include <cstring>

#include "apic/model/register_page.h"
#include "vmm/kvm/linux_kvm.h"

namespace sipi {

static_assert(sizeof kvm_lapic_state::regs == sizeof apic::RegisterPage::bytes);

inline apic::RegisterPage PageOf(const kvm_lapic_state& lapic) {
  apic::RegisterPage page;
  std::memcpy(page.bytes.data(), lapic.regs, sizeof lapic.regs);
  return page;
}

inline kvm_lapic_state LapicOf(const apic::RegisterPage& page) {
  kvm_lapic_state lapic = {};
  std::memcpy(lapic.regs, page.bytes.data(), sizeof lapic.regs);
  return lapic;
}

}  // namespace sipi
