// Entering 64-bit code directly: identity page tables, a GDT and a stack made by the loader.
//
// Source: SDM vol 3A, 4.5 "4-Level Paging", 3.4.5 (segment descriptors), 10.8.5 (long mode's
// control bits).
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "apic/regs/types.h"
#include "vmm/kvm/linux_kvm.h"
#include "vmm/memory/guest_memory.h"

namespace sipi {

inline constexpr uint64_t kLongModeStackBytes = 16 * 1024;

// What the tables map: the first 4 GiB, or up to the end of RAM if that is higher, but at most 512
// GiB (one top-level entry), in pages of 2 MiB, readable, writable, executable.
uint64_t IdentityMappedBytes(const GuestMemory& memory);

// The size of the loader's part: tables, GDT, stack; a multiple of 4 KiB.
uint64_t LongModeAreaBytes(const GuestMemory& memory);

// Writes tables and GDT to the area at `area`, a page's boundary. Error: OutOfRange.
absl::Status WriteLongModeArea(Gpa area, const GuestMemory& memory);

// CPU in 64-bit mode at `entry`, interrupts off, RSP = the top of the area's stack, a multiple of
// 16, RDI = RBX = `info`; no IDT. CS = 08H, data segments 10H. Changes only what is said here: pass
// in the reset state.
void SetLongModeEntryState(Gpa entry, Gpa info, Gpa area, const GuestMemory& memory, kvm_regs& regs,
                           kvm_sregs& sregs);

}  // namespace sipi
