#include "vmm/load/long_mode.h"

#include <algorithm>
#include <span>

#include "vmm/base/status_macros.h"
#include "vmm/load/loader_area.h"

namespace sipi {
namespace {

constexpr uint64_t kGib = 1ull << 30;
constexpr uint64_t kLargePageBytes = 2ull << 20;
constexpr uint64_t kEntriesPerTable = 512;

// Page table entries.
constexpr uint64_t kPresent = 1u << 0;
constexpr uint64_t kWritable = 1u << 1;
constexpr uint64_t kLarge = 1u << 7;

// The area: PML4, PDPT, one page directory per GiB, GDT, stack.
constexpr uint64_t kPml4At = 0;
constexpr uint64_t kPdptAt = kLoaderPageBytes;
constexpr uint64_t kDirectoriesAt = 2 * kLoaderPageBytes;

uint64_t Directories(const GuestMemory& memory) {
  return (IdentityMappedBytes(memory) + kGib - 1) / kGib;
}
uint64_t GdtAt(const GuestMemory& memory) {
  return kDirectoriesAt + Directories(memory) * kLoaderPageBytes;
}

constexpr uint16_t kCodeSelector = 0x08;
constexpr uint16_t kDataSelector = 0x10;
constexpr uint64_t kGdt[] = {
    0,
    0x00af'9b00'0000'ffff,  // 64-bit code: present, DPL 0, execute, read, accessed
    0x00cf'9300'0000'ffff,  // data: present, DPL 0, read, write, accessed
};

kvm_segment FlatSegment(uint16_t selector, bool code) {
  kvm_segment segment = {};
  segment.limit = 0xffffffff;
  segment.selector = selector;
  segment.type = code ? 0xb : 0x3;
  segment.present = 1;
  segment.s = 1;
  segment.g = 1;
  segment.l = code ? 1 : 0;
  segment.db = code ? 0 : 1;
  return segment;
}

}  // namespace

uint64_t IdentityMappedBytes(const GuestMemory& memory) {
  const RamRange last = memory.Ranges().back();
  const uint64_t ram_end = last.gpa.value + last.bytes;
  return std::clamp(ram_end, 4 * kGib, kEntriesPerTable * kGib);
}

uint64_t LongModeAreaBytes(const GuestMemory& memory) {
  return GdtAt(memory) + kLoaderPageBytes + kLongModeStackBytes;
}

absl::Status WriteLongModeArea(Gpa area, const GuestMemory& memory) {
  const uint64_t directories = Directories(memory);
  const Gpa pdpt = area + kPdptAt;
  const Gpa first_directory = area + kDirectoriesAt;
  ASSIGN_OR_RETURN(uint64_t* const pml4_entry, memory.At<uint64_t>(area + kPml4At));
  *pml4_entry = pdpt.value | kPresent | kWritable;
  ASSIGN_OR_RETURN(const auto pdpt_entries, memory.ArrayAt<uint64_t>(pdpt, directories));
  for (uint64_t i = 0; i < directories; ++i) {
    pdpt_entries[i] = (first_directory + i * kLoaderPageBytes).value | kPresent | kWritable;
  }
  ASSIGN_OR_RETURN(const auto pages,
                   memory.ArrayAt<uint64_t>(first_directory, directories * kEntriesPerTable));
  for (uint64_t i = 0; i < pages.size(); ++i) {
    pages[i] = i * kLargePageBytes | kPresent | kWritable | kLarge;
  }
  return memory.Write(area + GdtAt(memory), std::as_bytes(std::span(kGdt)));
}

void SetLongModeEntryState(Gpa entry, Gpa info, Gpa area, const GuestMemory& memory, kvm_regs& regs,
                           kvm_sregs& sregs) {
  constexpr uint64_t kCr0 = 0x8000'0011;  // PG, ET, PE
  constexpr uint64_t kCr4 = 0x20;         // PAE
  constexpr uint64_t kEfer = 0x500;       // LMA, LME
  constexpr uint64_t kRflags = 0x2;       // bit 1 is always set
  sregs.cs = FlatSegment(kCodeSelector, true);
  sregs.ds = sregs.es = sregs.fs = sregs.gs = sregs.ss = FlatSegment(kDataSelector, false);
  sregs.gdt = {};
  sregs.gdt.base = (area + GdtAt(memory)).value;
  sregs.gdt.limit = sizeof(kGdt) - 1;
  sregs.idt = {};
  sregs.tr = {};
  sregs.tr.type = 0xb;  // 64-bit TSS, busy
  sregs.tr.present = 1;
  sregs.tr.limit = 0x67;
  sregs.ldt = {};
  sregs.ldt.unusable = 1;
  sregs.cr0 = kCr0;
  sregs.cr3 = (area + kPml4At).value;
  sregs.cr4 = kCr4;
  sregs.efer = kEfer;
  regs.rip = entry.value;
  regs.rsp = (area + LongModeAreaBytes(memory)).value;
  regs.rdi = regs.rbx = info.value;
  regs.rflags = kRflags;
}

}  // namespace sipi
