// Multiboot 1: the header in the image, the information block, the boot CPU's state.
//
// Source: Multiboot Specification 0.6.96, sections 3.1 to 3.3.
//
// Not handled: a wish for a video mode (header flag 2), which is refused; symbols, drives, APM, VBE
// (their flags in the information block are clear).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apic/regs/types.h"
#include "vmm/kvm/linux_kvm.h"
#include "vmm/load/image_bytes.h"
#include "vmm/load/segments.h"
#include "vmm/memory/guest_memory.h"

namespace sipi {

// 3.1.3: where to load an image that need not be ELF. Physical addresses.
struct MultibootAddresses {
  uint32_t header = 0;
  uint32_t load_begin = 0;
  uint32_t load_end = 0;  // 0: to the end of the file
  uint32_t bss_end = 0;   // 0: there is none
  uint32_t entry = 0;
};

struct MultibootHeader {
  uint64_t offset = 0;  // in the file
  uint32_t flags = 0;
  std::optional<MultibootAddresses> addresses;
};

// Looks for the header in the first 8,192 bytes. Errors: NotFound if there is no magic number;
// InvalidArgument naming file and offset for one with a wrong checksum, or one that asks for what
// is not there.
absl::StatusOr<MultibootHeader> FindMultibootHeader(const ImageBytes& image);

// The one segment that the header's addresses describe. Precondition: header.addresses has a value.
// Error: InvalidArgument if they contradict each other or the file.
absl::StatusOr<ImageSegment> SegmentByAddresses(const ImageBytes& image,
                                                const MultibootHeader& header);

struct MultibootModule {
  std::span<const std::byte> bytes;
  std::string command_line;
};

struct MultibootInfo {
  std::string command_line;  // by custom, its first word is the program's name
  std::vector<MultibootModule> modules;
};

// Writes the information block, memory map, modules (on page boundaries) and strings to RAM, out of
// the way of page 0 and of `image`, and returns the block's address. Errors: ResourceExhausted
// (does not fit), OutOfRange (no RAM there).
absl::StatusOr<Gpa> WriteMultibootInfo(const MultibootInfo& info, const GpaRange& image,
                                       const GuestMemory& memory);

// 3.2: 32-bit protected mode, flat segments, paging and interrupts off, EAX = 2BADB002H, EBX = the
// block. Changes only what is fixed there: pass in the reset state.
void SetMultibootEntryState(Gpa entry, Gpa info, kvm_regs& regs, kvm_sregs& sregs);

}  // namespace sipi
