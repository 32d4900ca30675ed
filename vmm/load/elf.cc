#include "vmm/load/elf.h"

#include <elf.h>

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "vmm/base/status_macros.h"
#include "vmm/load/elf_file.h"
#include "vmm/load/image_bytes.h"
#include "vmm/load/segments.h"

namespace sipi {

absl::StatusOr<LoadedImage> LoadElf(std::span<const std::byte> file, const GuestMemory& memory,
                                    absl::string_view origin) {
  const ImageBytes image(file, origin);
  const absl::StatusOr<uint8_t> elf_class = image.Get<uint8_t>(EI_CLASS, "the ELF header");
  if (HasElfMagic(image) && elf_class.ok() && *elf_class != ELFCLASS64) {
    return image.Error(EI_CLASS, "this is not a 64-bit ELF file");
  }
  ASSIGN_OR_RETURN(const ElfFile elf, ReadElf(image));
  ASSIGN_OR_RETURN(const GpaRange range, LoadSegments(image, elf.segments, memory));
  if (elf.pvh_entry.has_value() && !range.Contains(*elf.pvh_entry)) {
    return image.Error(
        offsetof(Elf64_Ehdr, e_phoff),
        absl::StrCat("the PVH entry 0x", absl::Hex(elf.pvh_entry->value), " is outside the image"));
  }
  return LoadedImage{
      .entry = elf.entry, .pvh_entry = elf.pvh_entry, .begin = range.begin, .end = range.end};
}

}  // namespace sipi
