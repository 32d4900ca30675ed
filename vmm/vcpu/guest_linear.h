// Reads guest memory as the guest sees it, for fault reports.
// Source: SDM vol 3A, 4.5 "4-Level Paging and 5-Level Paging" (4-level only).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "apic/regs/types.h"
#include "vmm/kvm/linux_kvm.h"
#include "vmm/memory/guest_memory.h"

namespace sipi {

// The guest-physical address of a linear one: itself without paging, by the page tables in 4-level
// paging. Nothing where it is not mapped, or in a paging mode that sipi's guests do not use.
std::optional<Gpa> LinearToPhysical(uint64_t linear, const kvm_sregs& sregs,
                                    const GuestMemory& memory);

// Up to `bytes` bytes of code at CS:RIP; fewer where the mapping or the RAM ends.
std::vector<uint8_t> CodeBytes(const kvm_regs& regs, const kvm_sregs& sregs,
                               const GuestMemory& memory, size_t bytes);

}  // namespace sipi
