#include "vmm/load/elf.h"

#include <elf.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "vmm/base/status_macros.h"

namespace sipi {
namespace {

constexpr uint32_t kNotePhys32Entry = 18;  // XEN_ELFNOTE_PHYS32_ENTRY
constexpr char kNoteOwner[] = "Xen";       // with its final 0, as in the note

// A file's bytes with checked access, and its name for errors.
class Image {
 public:
  Image(std::span<const std::byte> bytes, absl::string_view origin)
      : bytes_(bytes), origin_(origin) {}

  absl::Status Error(uint64_t offset, absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat(origin_, ": offset 0x", absl::Hex(offset), ": ", what));
  }

  absl::StatusOr<std::span<const std::byte>> Bytes(uint64_t offset, uint64_t count,
                                                   absl::string_view what) const {
    if (offset > bytes_.size() || count > bytes_.size() - offset) {
      return Error(offset,
                   absl::StrCat(what, " of ", count, " bytes runs past the end of the file (",
                                bytes_.size(), " bytes); the file is cut off or damaged"));
    }
    return bytes_.subspan(offset, count);
  }

  template <class T>
  absl::StatusOr<T> Get(uint64_t offset, absl::string_view what) const {
    ASSIGN_OR_RETURN(const auto from, Bytes(offset, sizeof(T), what));
    T value;
    memcpy(&value, from.data(), sizeof(T));
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  absl::string_view origin_;
};

absl::StatusOr<Elf64_Ehdr> ReadHeader(const Image& image) {
  ASSIGN_OR_RETURN(const Elf64_Ehdr header, image.Get<Elf64_Ehdr>(0, "the ELF header"));
  if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return image.Error(0, "this is not an ELF file; give an uncompressed ELF64 image");
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return image.Error(EI_CLASS, "this is not a 64-bit little-endian ELF file");
  }
  if (header.e_machine != EM_X86_64) {
    return image.Error(
        offsetof(Elf64_Ehdr, e_machine),
        absl::StrCat("the image is for ELF machine ", header.e_machine, ", not for x86-64 (62)"));
  }
  if (header.e_type != ET_EXEC && header.e_type != ET_DYN) {
    return image.Error(offsetof(Elf64_Ehdr, e_type),
                       absl::StrCat("ELF type ", header.e_type, " cannot be run; link it"));
  }
  if (header.e_phnum == 0 || header.e_phentsize != sizeof(Elf64_Phdr)) {
    return image.Error(offsetof(Elf64_Ehdr, e_phnum),
                       absl::StrCat(header.e_phnum, " program headers of ", header.e_phentsize,
                                    " bytes; at least one of ", sizeof(Elf64_Phdr), " is needed"));
  }
  return header;
}

absl::Status LoadSegment(const Image& image, const Elf64_Phdr& segment, uint64_t header_offset,
                         const GuestMemory& memory) {
  if (segment.p_filesz > segment.p_memsz) {
    return image.Error(header_offset,
                       absl::StrCat("segment with ", segment.p_filesz, " bytes in the file but ",
                                    segment.p_memsz, " in memory"));
  }
  ASSIGN_OR_RETURN(const auto from, image.Bytes(segment.p_offset, segment.p_filesz, "segment"));
  const auto to = memory.Span(Gpa(segment.p_paddr), segment.p_memsz);
  if (!to.ok()) {
    return absl::OutOfRangeError(absl::StrCat(image.Error(header_offset, "segment: ").message(),
                                              to.status().message(),
                                              "; give the guest more memory"));
  }
  std::copy(from.begin(), from.end(), to->begin());
  std::fill(to->begin() + static_cast<ptrdiff_t>(from.size()), to->end(), std::byte{0});
  return absl::OkStatus();
}

// Looks through one PT_NOTE segment for the PVH entry; stops in silence at what is no note, since
// notes are only hints.
std::optional<Gpa> FindPvhNote(std::span<const std::byte> notes, uint64_t align) {
  const auto padded = [align](uint64_t bytes) { return (bytes + align - 1) & ~(align - 1); };
  while (notes.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr note;
    memcpy(&note, notes.data(), sizeof(note));
    const uint64_t name_at = sizeof(note);
    const uint64_t desc_at = padded(name_at + note.n_namesz);
    if (desc_at > notes.size() || note.n_descsz > notes.size() - desc_at) return std::nullopt;
    const bool xen = note.n_namesz == sizeof(kNoteOwner) &&
                     memcmp(notes.data() + name_at, kNoteOwner, sizeof(kNoteOwner)) == 0;
    if (xen && note.n_type == kNotePhys32Entry && (note.n_descsz == 4 || note.n_descsz == 8)) {
      uint64_t entry = 0;
      memcpy(&entry, notes.data() + desc_at, note.n_descsz);
      return Gpa(entry);
    }
    notes = notes.subspan(std::min<uint64_t>(padded(desc_at + note.n_descsz), notes.size()));
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<LoadedImage> LoadElf(std::span<const std::byte> file, const GuestMemory& memory,
                                    absl::string_view origin) {
  const Image image(file, origin);
  ASSIGN_OR_RETURN(const Elf64_Ehdr header, ReadHeader(image));
  LoadedImage loaded{.entry = Gpa(header.e_entry), .begin = Gpa(~uint64_t{0})};
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    const uint64_t offset = header.e_phoff + i * sizeof(Elf64_Phdr);
    ASSIGN_OR_RETURN(const Elf64_Phdr segment, image.Get<Elf64_Phdr>(offset, "program header"));
    if (segment.p_type == PT_LOAD && segment.p_memsz != 0) {
      RETURN_IF_ERROR(LoadSegment(image, segment, offset, memory));
      loaded.begin = std::min(loaded.begin, Gpa(segment.p_paddr));
      loaded.end = std::max(loaded.end, Gpa(segment.p_paddr) + segment.p_memsz);
    } else if (segment.p_type == PT_NOTE && !loaded.pvh_entry.has_value()) {
      ASSIGN_OR_RETURN(const auto notes,
                       image.Bytes(segment.p_offset, segment.p_filesz, "note segment"));
      // Notes are aligned to 4 bytes, or to 8 where the segment says so (gABI, note section).
      loaded.pvh_entry = FindPvhNote(notes, segment.p_align == 8 ? 8 : 4);
    }
  }
  if (loaded.end == Gpa(0)) return image.Error(header.e_phoff, "no segment to load");
  if (loaded.pvh_entry.has_value() &&
      (*loaded.pvh_entry < loaded.begin || *loaded.pvh_entry >= loaded.end)) {
    return image.Error(header.e_phoff,
                       absl::StrCat("the PVH entry 0x", absl::Hex(loaded.pvh_entry->value),
                                    " is outside the image"));
  }
  return loaded;
}

}  // namespace sipi
