#include "tests/e2e/guest_code.h"

#include <elf.h>

#include <cstring>
#include <fstream>

#include "tests/e2e/command.h"
#include "tests/support/elf_class.h"

extern "C" const unsigned char sipi_guest_code[];
extern "C" const unsigned char sipi_guest_code_end[];

namespace sipi::e2e {
namespace {

constexpr size_t kCodeAt = 0x200;
constexpr size_t kNoteAt = 0x180;
constexpr uint64_t kBssBytes = 0x1000;

template <class T>
void Put(std::string& bytes, size_t at, const T& value) {
  memcpy(bytes.data() + at, &value, sizeof value);
}

// As Xen's elfnote.h has it: XEN_ELFNOTE_PHYS32_ENTRY.
std::string PvhNote(uint32_t entry) {
  const uint32_t words[] = {4, 4, 18};
  std::string note(reinterpret_cast<const char*>(words), sizeof words);
  note.append("Xen", 4);
  note.append(reinterpret_cast<const char*>(&entry), sizeof entry);
  return note;
}

template <class C>
std::string Build(uint64_t gpa, uint64_t entry, const std::string& code, const std::string& note) {
  std::string bytes(kCodeAt, '\0');
  typename C::Header header = ExecutableHeader<C>(entry);
  header.e_phnum = note.empty() ? 1 : 2;
  Put(bytes, 0, header);
  typename C::Segment load = {};
  load.p_type = PT_LOAD;
  load.p_offset = kCodeAt;
  load.p_vaddr = load.p_paddr = static_cast<decltype(load.p_paddr)>(gpa);
  load.p_filesz = static_cast<decltype(load.p_filesz)>(code.size());
  load.p_memsz = static_cast<decltype(load.p_memsz)>(code.size() + kBssBytes);
  Put(bytes, sizeof header, load);
  if (!note.empty()) {
    typename C::Segment notes = {};
    notes.p_type = PT_NOTE;
    notes.p_offset = kNoteAt;
    notes.p_filesz = static_cast<decltype(notes.p_filesz)>(note.size());
    notes.p_align = 4;
    Put(bytes, sizeof header + sizeof load, notes);
    memcpy(bytes.data() + kNoteAt, note.data(), note.size());
  }
  return bytes + code;
}

}  // namespace

std::string GuestImage(Program program, Form form, uint64_t gpa) {
  std::string code(sipi_guest_code, sipi_guest_code_end);
  const uint64_t entry = gpa + static_cast<uint64_t>(program - sipi_guest_code);
  const bool multiboot = form == Form::kMultiboot || form == Form::kPvh32;
  if (!multiboot) Put(code, 0, uint32_t{0});
  const bool pvh = form == Form::kPvh32 || form == Form::kPvh64;
  const std::string note = pvh ? PvhNote(static_cast<uint32_t>(entry)) : "";
  const bool wide = form == Form::kPvh64 || form == Form::kElf64;
  // With a note the other entry must not be taken.
  const uint64_t elf_entry = pvh ? gpa : entry;
  return wide ? Build<Elf64>(gpa, elf_entry, code, note) : Build<Elf32>(gpa, elf_entry, code, note);
}

std::string FileWith(const std::string& bytes) {
  std::string path = TempPath("guest");
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

std::string Payload(Program program, Form form) {
  return "--payload=" + FileWith(GuestImage(program, form));
}

}  // namespace sipi::e2e
