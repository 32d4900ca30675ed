// The 1 KiB register page of a local APIC as plain bytes: the layout of struct kvm_lapic_state, so
// that a page can go to KVM_SET_LAPIC or be compared with one from KVM_GET_LAPIC.
//
// As KVM has it: in x2APIC mode the ID register holds all 32 bits (KVM_CAP_X2APIC_API) and the ICR
// is split over 300H and 310H.
//
// Not in a page, and so lost when one is restored: IA32_APIC_BASE, IA32_TSC_DEADLINE, errors that
// no write to ESR has made visible yet, and the vector that set LINT0's remote IRR where software
// has changed the entry's since (the entry's counts).
//
// Source: SDM vol 3A, table 11-1 (offsets); KVM API, KVM_GET_LAPIC.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "apic/regs/registers.h"

namespace sipi::apic {

struct RegisterPage {
  std::array<uint8_t, 1024> bytes = {};

  uint32_t Get(uint32_t offset) const {
    uint32_t value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
  }
  void Set(uint32_t offset, uint32_t value) {
    std::memcpy(bytes.data() + offset, &value, sizeof value);
  }
  uint32_t Get(Reg reg) const { return Get(static_cast<uint32_t>(reg)); }
  void Set(Reg reg, uint32_t value) { Set(static_cast<uint32_t>(reg), value); }

  bool operator==(const RegisterPage&) const = default;
};
static_assert(sizeof(RegisterPage) == 1024);

}  // namespace sipi::apic
