// What the two classes of ELF files differ in, for the tests that make such files.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>

namespace sipi {

struct Elf32 {
  using Header = Elf32_Ehdr;
  using Segment = Elf32_Phdr;
  static constexpr uint8_t kClass = ELFCLASS32;
  static constexpr uint16_t kMachine = EM_386;
};
struct Elf64 {
  using Header = Elf64_Ehdr;
  using Segment = Elf64_Phdr;
  static constexpr uint8_t kClass = ELFCLASS64;
  static constexpr uint16_t kMachine = EM_X86_64;
};

// The header of an executable of class `C` whose program headers follow it at once; e_phnum is the
// caller's.
template <class C>
typename C::Header ExecutableHeader(uint64_t entry) {
  typename C::Header header = {};
  memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = C::kClass;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_type = ET_EXEC;
  header.e_machine = C::kMachine;
  header.e_entry = static_cast<decltype(header.e_entry)>(entry);
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof(typename C::Segment);
  return header;
}

}  // namespace sipi
