// Loads an ELF64 image for x86-64 into guest memory, and finds its entries.
//
// Segments go to their physical addresses (p_paddr). Images are untrusted: every offset is checked.
// Source: System V ABI, ELF-64 object file format; the PVH note: Xen's include/public/elfnote.h,
// XEN_ELFNOTE_PHYS32_ENTRY (18), owner "Xen".
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "apic/regs/types.h"
#include "vmm/memory/guest_memory.h"

namespace sipi {

struct LoadedImage {
  Gpa entry;                                    // e_entry, as it stands in the file (64-bit code)
  std::optional<Gpa> pvh_entry = std::nullopt;  // 32-bit entry of the PVH note
  Gpa begin;                                    // lowest physical address loaded
  Gpa end = Gpa(0);                             // one past the highest, bss included
};

// `origin` names the image in errors: "file: offset 0x40: what is wrong". Errors: InvalidArgument
// for what is not a loadable image, OutOfRange where guest memory is too small.
absl::StatusOr<LoadedImage> LoadElf(std::span<const std::byte> file, const GuestMemory& memory,
                                    absl::string_view origin);

}  // namespace sipi
