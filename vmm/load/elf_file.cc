#include "vmm/load/elf_file.h"

#include <elf.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include "absl/strings/str_cat.h"
#include "vmm/base/status_macros.h"

namespace sipi {
namespace {

constexpr uint32_t kNotePhys32Entry = 18;  // XEN_ELFNOTE_PHYS32_ENTRY
constexpr char kNoteOwner[] = "Xen";       // with its final 0, as in the note
constexpr uint16_t kMaxProgramHeaders = 128;

// The two classes differ in the width of fields only.
struct Class32 {
  using Header = Elf32_Ehdr;
  using ProgramHeader = Elf32_Phdr;
  static constexpr bool kIs64Bit = false;
  static constexpr uint16_t kMachine = EM_386;
};
struct Class64 {
  using Header = Elf64_Ehdr;
  using ProgramHeader = Elf64_Phdr;
  static constexpr bool kIs64Bit = true;
  static constexpr uint16_t kMachine = EM_X86_64;
};

template <class C>
absl::StatusOr<typename C::Header> ReadHeader(const ImageBytes& image) {
  using Header = typename C::Header;
  ASSIGN_OR_RETURN(const Header header, image.Get<Header>(0, "the ELF header"));
  if (header.e_machine != C::kMachine) {
    return image.Error(offsetof(Header, e_machine),
                       absl::StrCat("the image is for ELF machine ", header.e_machine, ", not for ",
                                    C::kIs64Bit ? "x86-64 (62)" : "i386 (3)"));
  }
  if (header.e_type != ET_EXEC && header.e_type != ET_DYN) {
    return image.Error(offsetof(Header, e_type),
                       absl::StrCat("ELF type ", header.e_type, " cannot be run; link it"));
  }
  constexpr size_t kEntryBytes = sizeof(typename C::ProgramHeader);
  if (header.e_phnum == 0 || header.e_phnum > kMaxProgramHeaders ||
      header.e_phentsize != kEntryBytes) {
    return image.Error(
        offsetof(Header, e_phnum),
        absl::StrCat(header.e_phnum, " program headers of ", header.e_phentsize, " bytes; 1 to ",
                     kMaxProgramHeaders, " of ", kEntryBytes, " are needed"));
  }
  return header;
}

// Looks through one PT_NOTE segment for the PVH entry; stops in silence at what is no note, since
// notes are only hints. A note's header is the same in both classes.
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

// Where virtual addresses have been linked to.
struct VirtualRange {
  uint64_t begin = 0;
  uint64_t bytes = 0;
  Gpa at;
};

Gpa PhysicalEntry(uint64_t entry, const ElfFile& file, std::span<const VirtualRange> ranges) {
  for (const ImageSegment& segment : file.segments) {
    if (entry - segment.at.value < segment.memory_bytes) return Gpa(entry);
  }
  for (const VirtualRange& range : ranges) {
    if (entry - range.begin < range.bytes) return range.at + (entry - range.begin);
  }
  return Gpa(entry);
}

template <class C>
absl::StatusOr<ElfFile> Read(const ImageBytes& image) {
  using ProgramHeader = typename C::ProgramHeader;
  ASSIGN_OR_RETURN(const auto header, ReadHeader<C>(image));
  ElfFile file{.is_64bit = C::kIs64Bit, .entry = {}, .pvh_entry = {}, .segments = {}};
  std::vector<VirtualRange> ranges;
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    const uint64_t offset = header.e_phoff + i * sizeof(ProgramHeader);
    ASSIGN_OR_RETURN(const auto segment, image.Get<ProgramHeader>(offset, "program header"));
    if (segment.p_type == PT_INTERP) {
      return image.Error(offset,
                         "a program for an operating system (it asks for a dynamic linker), "
                         "not a kernel");
    }
    if (segment.p_type == PT_LOAD && segment.p_memsz != 0) {
      file.segments.push_back({.header_offset = offset,
                               .file_offset = segment.p_offset,
                               .file_bytes = segment.p_filesz,
                               .at = Gpa(segment.p_paddr),
                               .memory_bytes = segment.p_memsz});
      ranges.push_back({segment.p_vaddr, segment.p_memsz, Gpa(segment.p_paddr)});
    } else if (segment.p_type == PT_NOTE && !file.pvh_entry.has_value()) {
      ASSIGN_OR_RETURN(const auto notes,
                       image.Bytes(segment.p_offset, segment.p_filesz, "note segment"));
      // Notes are aligned to 4 bytes, or to 8 where the segment says so (gABI, note section).
      file.pvh_entry = FindPvhNote(notes, segment.p_align == 8 ? 8 : 4);
    }
  }
  if (file.segments.empty()) return image.Error(header.e_phoff, "no segment to load");
  file.entry = PhysicalEntry(header.e_entry, file, ranges);
  return file;
}

}  // namespace

bool HasElfMagic(const ImageBytes& image) {
  const auto magic = image.Bytes(0, SELFMAG, "ELF magic");
  return magic.ok() && memcmp(magic->data(), ELFMAG, SELFMAG) == 0;
}

absl::StatusOr<ElfFile> ReadElf(const ImageBytes& image) {
  if (!HasElfMagic(image)) {
    return image.Error(0, "this is not an ELF file; give an uncompressed ELF image");
  }
  ASSIGN_OR_RETURN(const auto ident, image.Bytes(0, EI_NIDENT, "the ELF header"));
  const auto byte = [&](size_t at) { return std::to_integer<uint8_t>(ident[at]); };
  if (byte(EI_DATA) != ELFDATA2LSB) {
    return image.Error(EI_DATA, "this ELF file is not little-endian");
  }
  switch (byte(EI_CLASS)) {
    case ELFCLASS32:
      return Read<Class32>(image);
    case ELFCLASS64:
      return Read<Class64>(image);
    default:
      return image.Error(EI_CLASS, absl::StrCat("ELF class ", byte(EI_CLASS),
                                                " is neither 32-bit (1) nor 64-bit (2)"));
  }
}

}  // namespace sipi
