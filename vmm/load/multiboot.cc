#include "vmm/load/multiboot.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "vmm/base/status_macros.h"
#include "vmm/load/pvh.h"

namespace sipi {
namespace {

// 3.1.1 and 3.1.2.
constexpr uint64_t kSearchBytes = 8192;
constexpr uint32_t kHeaderMagic = 0x1badb002;
constexpr uint32_t kKnownRequirements = 0x3;  // page-aligned modules, memory information
constexpr uint32_t kWantsVideo = 1u << 2;
constexpr uint32_t kRequirements = 0xffff;
constexpr uint32_t kHasAddresses = 1u << 16;

// 3.2.
constexpr uint32_t kLoaderMagic = 0x2badb002;

struct RawHeader {
  uint32_t magic;
  uint32_t flags;
  uint32_t checksum;
};

absl::StatusOr<MultibootHeader> CheckHeader(const ImageBytes& image, uint64_t offset,
                                            const RawHeader& raw) {
  constexpr uint64_t kFlagsAt = offsetof(RawHeader, flags);
  if ((raw.flags & kWantsVideo) != 0) {
    return image.Error(offset + kFlagsAt,
                       "the multiboot header asks for a video mode (flag 2); "
                       "there is no display here");
  }
  if ((raw.flags & kRequirements & ~kKnownRequirements) != 0) {
    return image.Error(
        offset + kFlagsAt,
        absl::StrCat("the multiboot header requires flags 0x", absl::Hex(raw.flags & kRequirements),
                     ", of which only 0x", absl::Hex(kKnownRequirements), " are known"));
  }
  MultibootHeader header{.offset = offset, .flags = raw.flags, .addresses = {}};
  if ((raw.flags & kHasAddresses) != 0) {
    const uint64_t at = offset + sizeof(RawHeader);
    if (at + sizeof(MultibootAddresses) > kSearchBytes) {
      return image.Error(at, "the multiboot header runs past byte 8192 of the file");
    }
    ASSIGN_OR_RETURN(header.addresses,
                     image.Get<MultibootAddresses>(at, "the multiboot header's addresses"));
  }
  return header;
}

}  // namespace

absl::StatusOr<MultibootHeader> FindMultibootHeader(const ImageBytes& image) {
  std::optional<uint64_t> broken_at;
  const uint64_t end = std::min(image.size(), kSearchBytes);
  for (uint64_t offset = 0; offset + sizeof(RawHeader) <= end; offset += 4) {
    ASSIGN_OR_RETURN(const RawHeader raw, image.Get<RawHeader>(offset, "multiboot header"));
    if (raw.magic != kHeaderMagic) continue;
    if (raw.magic + raw.flags + raw.checksum == 0) return CheckHeader(image, offset, raw);
    if (!broken_at.has_value()) broken_at = offset;
  }
  if (broken_at.has_value()) {
    return image.Error(*broken_at,
                       "multiboot header whose magic number, flags and checksum do "
                       "not add up to 0");
  }
  return absl::NotFoundError(
      absl::StrCat(image.Error(0, "no multiboot header").message(), " in the first 8192 bytes"));
}

absl::StatusOr<ImageSegment> SegmentByAddresses(const ImageBytes& image,
                                                const MultibootHeader& header) {
  const MultibootAddresses& at = *header.addresses;
  const uint64_t fields_at = header.offset + sizeof(RawHeader);
  const uint64_t before_header = uint64_t{at.header} - at.load_begin;
  if (at.header < at.load_begin || before_header > header.offset) {
    return image.Error(fields_at, absl::StrCat("the multiboot header says that it is loaded to 0x",
                                               absl::Hex(at.header), " and the image to 0x",
                                               absl::Hex(at.load_begin), ", but it is at 0x",
                                               absl::Hex(header.offset), " of the file"));
  }
  const uint64_t file_offset = header.offset - before_header;
  const uint64_t rest = image.size() - file_offset;
  const uint64_t file_bytes = at.load_end == 0 ? rest : uint64_t{at.load_end} - at.load_begin;
  const uint64_t load_end = at.load_begin + file_bytes;
  const uint64_t memory_end = at.bss_end == 0 ? load_end : at.bss_end;
  if ((at.load_end != 0 && at.load_end < at.load_begin) || memory_end < load_end) {
    return image.Error(
        fields_at,
        absl::StrCat("multiboot addresses out of order: load 0x", absl::Hex(at.load_begin),
                     " to 0x", absl::Hex(load_end), ", bss to 0x", absl::Hex(at.bss_end)));
  }
  return ImageSegment{.header_offset = fields_at,
                      .file_offset = file_offset,
                      .file_bytes = file_bytes,
                      .at = Gpa(at.load_begin),
                      .memory_bytes = memory_end - at.load_begin};
}

void SetMultibootEntryState(Gpa entry, Gpa info, kvm_regs& regs, kvm_sregs& sregs) {
  SetPvhEntryState(entry, info, regs, sregs);  // the same but for EAX
  regs.rax = kLoaderMagic;
}

}  // namespace sipi
