// The x86/HVM direct boot ABI (PVH): start info, memory map, module list, and the boot CPU's state.
// Source: Xen, docs/misc/pvh.pandoc and xen/include/public/arch-x86/hvm/start_info.h, version 1.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "apic/regs/types.h"
#include "vmm/kvm/linux_kvm.h"
#include "vmm/memory/guest_memory.h"

namespace sipi {

struct PvhModule {
  Gpa at;
  uint64_t bytes = 0;
};

struct PvhInfo {
  std::string command_line = {};
  std::vector<PvhModule> modules = {};  // module 0 is the boot parameters' blob
  Gpa rsdp = Gpa(0);                    // ACPI's root pointer; 0: there is none
};

enum class MemoryMapType : uint32_t { kRam = 1, kReserved = 2 };
struct MemoryMapEntry {
  Gpa at;
  uint64_t bytes = 0;
  MemoryMapType type = MemoryMapType::kRam;
};

// The memory map handed over: sorted, no overlap; RAM but for 9FC00H to 100000H (EBDA, video,
// ROMs), which is reserved, as is the hole from 3 to 4 GiB (local APIC, IOAPIC, KVM's own pages).
std::vector<MemoryMapEntry> BuildMemoryMap(const GuestMemory& memory);

// Writes hvm_start_info, memory map, module list and command line to one page at `at`, and returns
// `at`. Errors: OutOfRange (no RAM there), InvalidArgument with both numbers (does not fit the
// page).
absl::StatusOr<Gpa> WritePvhInfo(const PvhInfo& info, Gpa at, const GuestMemory& memory);

// The boot CPU's registers at the PVH entry: 32-bit protected mode, flat segments, paging off,
// interrupts off, EBX = start info. Changes only what the ABI fixes: pass in the reset state.
void SetPvhEntryState(Gpa entry, Gpa start_info, kvm_regs& regs, kvm_sregs& sregs);

}  // namespace sipi
