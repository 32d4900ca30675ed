// Reads the headers of an x86 ELF file, 32 or 64 bits: what to load where, and the entries.
//
// Source: System V ABI, gABI chapters 4 and 5; the PVH note: Xen, xen/include/public/elfnote.h,
// XEN_ELFNOTE_PHYS32_ENTRY (18), owner "Xen". Files are untrusted: every offset is checked, and
// nothing is allocated by a size that the file gives. Not handled: relocations, section headers;
// files for a dynamic linker are refused.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "apic/regs/types.h"
#include "vmm/load/image_bytes.h"
#include "vmm/load/segments.h"

namespace sipi {

struct ElfFile {
  bool is_64bit = false;
  // e_entry as a physical address: where it lies in no segment's physical range but in a segment's
  // virtual one, it has been translated. Not checked to be in the image: PVH does not use it.
  Gpa entry;
  std::optional<Gpa> pvh_entry;        // 32-bit entry of the PVH note
  std::vector<ImageSegment> segments;  // those to load, by physical address, not empty ones
};

// True if the file claims to be ELF, of whatever kind.
bool HasElfMagic(const ImageBytes& image);

// Errors: InvalidArgument naming file and offset for what is not an x86 ELF executable.
absl::StatusOr<ElfFile> ReadElf(const ImageBytes& image);

}  // namespace sipi
