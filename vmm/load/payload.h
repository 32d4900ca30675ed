// Other people's guests: finds out what kind of image a file is, loads it, and prepares the boot
// CPU for it.
//
// | file                                     | kind       | entered in          | handed over     |
// | ---------------------------------------- | ---------- | ------------------- | --------------- |
// | ELF, 32 or 64 bits, with a PVH note      | kPvh       | protected mode      | hvm_start_info  |
// | multiboot 1 header: ELF, or by addresses | kMultiboot | protected mode      | multiboot block |
// | ELF, 64 bits, with neither               | kElf64     | 64-bit mode         | hvm_start_info  |
//
// The first row that fits counts. Not handled: compressed kernels (bzImage), multiboot 2.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "apic/regs/types.h"
#include "vmm/kvm/linux_kvm.h"
#include "vmm/load/segments.h"
#include "vmm/memory/guest_memory.h"

namespace sipi {

enum class PayloadKind { kPvh, kMultiboot, kElf64 };

struct PayloadOptions {
  std::string program;      // the command line's first word for multiboot: the file's name
  std::string append;       // the rest of it, or all of it for the other kinds
  std::string environment;  // lines KEY=VALUE; if not empty, the one module handed over
  Gpa rsdp;                 // ACPI's root pointer for hvm_start_info; 0: there is none
};

struct LoadedPayload {
  PayloadKind kind = PayloadKind::kPvh;
  GpaRange image;
  Gpa entry;
  Gpa info;            // the block handed over
  Gpa long_mode_area;  // kElf64: page tables, GDT, stack
};

// "PVH", "multiboot", "64-bit ELF".
absl::string_view PayloadKindName(PayloadKind kind);

// Loads the image and writes what is handed over. `origin` names the file in errors, which are one
// line each: InvalidArgument with the offset for what is no such image, OutOfRange or
// ResourceExhausted where the guest's memory is too small.
absl::StatusOr<LoadedPayload> LoadPayload(std::span<const std::byte> file, absl::string_view origin,
                                          const PayloadOptions& options, const GuestMemory& memory);

// The boot CPU's state at the entry. Changes only what the kind's rules fix: pass in the reset
// state.
void SetPayloadEntryState(const LoadedPayload& payload, const GuestMemory& memory, kvm_regs& regs,
                          kvm_sregs& sregs);

}  // namespace sipi
