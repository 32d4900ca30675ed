// Small images for the loaders' tests, built from the structures of <elf.h> and the multiboot
// specification.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tests/support/elf_class.h"

namespace sipi {

using Bytes = std::vector<std::byte>;

template <class T>
void Put(Bytes& bytes, size_t at, const T& value) {
  if (bytes.size() < at + sizeof(T)) bytes.resize(at + sizeof(T));
  memcpy(bytes.data() + at, &value, sizeof(T));
}

inline void PutText(Bytes& bytes, size_t at, const std::string& text) {
  if (bytes.size() < at + text.size()) bytes.resize(at + text.size());
  memcpy(bytes.data() + at, text.data(), text.size());
}

// What 3.1.1 of the multiboot specification asks for.
inline void PutMultibootHeader(Bytes& bytes, size_t at, uint32_t flags) {
  constexpr uint32_t kMagic = 0x1badb002;
  Put(bytes, at, kMagic);
  Put(bytes, at + 4, flags);
  Put(bytes, at + 8, 0 - kMagic - flags);
}

// An ELF file of two segments with 32 bytes each in the file, the second with a bss. `C` is Elf32
// or Elf64.
template <class C>
struct ElfImage {
  static constexpr size_t kTextAt = 0x200;
  static constexpr size_t kDataAt = 0x240;
  static constexpr uint64_t kTextGpa = 0x400000;
  static constexpr uint64_t kDataGpa = 0x407000;

  typename C::Header header = ExecutableHeader<C>(kTextGpa + 12);
  std::vector<typename C::Segment> segments;
  bool multiboot = false;  // a header at the start of the text
  uint32_t multiboot_flags = 0;
  std::string notes;

  ElfImage() {
    AddSegment(PT_LOAD, kTextAt, kTextGpa, 32, 32);
    AddSegment(PT_LOAD, kDataAt, kDataGpa, 32, 0x5000);
  }

  void AddSegment(uint32_t type, uint32_t offset, uint64_t gpa, uint32_t file_bytes,
                  uint32_t memory_bytes) {
    typename C::Segment segment = {};
    segment.p_type = type;
    segment.p_offset = offset;
    segment.p_vaddr = segment.p_paddr = static_cast<decltype(segment.p_paddr)>(gpa);
    segment.p_filesz = file_bytes;
    segment.p_memsz = memory_bytes;
    segment.p_align = 4;
    segments.push_back(segment);
    header.e_phnum = static_cast<uint16_t>(segments.size());
  }

  // A note as Xen's elfnote.h has it, at 280H.
  void AddPvhNote(uint32_t entry) {
    constexpr uint32_t kNotesAt = 0x280;
    const uint32_t words[] = {4, 4, 18};
    notes.assign(reinterpret_cast<const char*>(words), sizeof(words));
    notes.append("Xen", 4);
    notes.append(reinterpret_cast<const char*>(&entry), sizeof(entry));
    AddSegment(PT_NOTE, kNotesAt, 0, static_cast<uint32_t>(notes.size()), 0);
  }

  Bytes Build() const {
    Bytes bytes;
    Put(bytes, 0, header);
    for (size_t i = 0; i < segments.size(); ++i) {
      Put(bytes, sizeof(header) + i * sizeof(segments[i]), segments[i]);
    }
    PutText(bytes, kTextAt, std::string(32, 't'));
    PutText(bytes, kDataAt, std::string(32, 'd'));
    if (multiboot) PutMultibootHeader(bytes, kTextAt, multiboot_flags);
    if (!notes.empty()) PutText(bytes, 0x280, notes);
    return bytes;
  }
};

}  // namespace sipi
