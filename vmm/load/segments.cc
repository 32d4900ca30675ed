#include "vmm/load/segments.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "vmm/base/status_macros.h"

namespace sipi {
namespace {

constexpr uintptr_t kPageBytes = 4096;
constexpr uint64_t kPhysicalEnd = uint64_t{1} << 52;  // of any CPU: SDM vol 3A, 4.1.4

// True if no amount of memory has room for it.
bool ReachesHole(const ImageSegment& segment) {
  if (segment.at.value >= kLowRamLimit) return segment.at.value < kHighRamGpa;
  return segment.memory_bytes > kLowRamLimit - segment.at.value;
}

// True if it ends behind all physical addresses, or behind 2^64.
bool BeyondAnyRam(const ImageSegment& segment) {
  return segment.at.value >= kPhysicalEnd || segment.memory_bytes > kPhysicalEnd - segment.at.value;
}

absl::Status CheckSegment(const ImageBytes& image, const ImageSegment& segment,
                          const GuestMemory& memory) {
  if (segment.file_bytes > segment.memory_bytes) {
    return image.Error(segment.header_offset,
                       absl::StrCat("segment with ", segment.file_bytes, " bytes in the file but ",
                                    segment.memory_bytes, " in memory"));
  }
  RETURN_IF_ERROR(image.Bytes(segment.file_offset, segment.file_bytes, "segment").status());
  const auto to = memory.Span(segment.at, segment.memory_bytes);
  if (to.ok()) return absl::OkStatus();
  const char* const remedy =
      BeyondAnyRam(segment)  ? "; no CPU has such addresses: link the image to other addresses"
      : ReachesHole(segment) ? "; no RAM is ever from 0xc0000000 up to 4 GiB, where devices are: "
                               "link the image to other addresses"
                             : "; give the guest more memory (--memory)";
  return absl::OutOfRangeError(absl::StrCat(
      image.Error(segment.header_offset, "segment: ").message(), to.status().message(), remedy));
}

// Overlapping segments have no meaning, and many of them would cost more time than RAM is large.
absl::Status CheckOverlap(const ImageBytes& image, std::vector<ImageSegment> segments) {
  std::sort(segments.begin(), segments.end(),
            [](const ImageSegment& a, const ImageSegment& b) { return a.at < b.at; });
  for (size_t i = 1; i < segments.size(); ++i) {
    const ImageSegment& before = segments[i - 1];
    if (segments[i].at.value - before.at.value >= before.memory_bytes) continue;
    return image.Error(segments[i].header_offset,
                       absl::StrCat("segment at 0x", absl::Hex(segments[i].at.value),
                                    " overlaps the one at 0x", absl::Hex(before.at.value)));
  }
  return absl::OkStatus();
}

}  // namespace

void ZeroRam(std::span<std::byte> ram) {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(ram.data());
  const size_t to_page =
      std::min<size_t>((kPageBytes - begin % kPageBytes) % kPageBytes, ram.size());
  const size_t whole = (ram.size() - to_page) / kPageBytes * kPageBytes;
  std::span<std::byte> pages = ram.subspan(to_page, whole);
  // Guest memory is private and anonymous: a page that has been given back reads as zeros.
  const bool given_back = !pages.empty() && madvise(pages.data(), pages.size(), MADV_DONTNEED) == 0;
  if (!given_back) std::fill(pages.begin(), pages.end(), std::byte{0});
  const auto head = ram.first(to_page);
  const auto tail = ram.subspan(to_page + whole);
  std::fill(head.begin(), head.end(), std::byte{0});
  std::fill(tail.begin(), tail.end(), std::byte{0});
}

absl::StatusOr<GpaRange> LoadSegments(const ImageBytes& image,
                                      std::span<const ImageSegment> segments,
                                      const GuestMemory& memory) {
  if (segments.empty()) return image.Error(0, "no segment to load");
  for (const ImageSegment& segment : segments) {
    RETURN_IF_ERROR(CheckSegment(image, segment, memory));
  }
  RETURN_IF_ERROR(CheckOverlap(image, {segments.begin(), segments.end()}));
  GpaRange range{.begin = segments[0].at, .end = segments[0].at};
  for (const ImageSegment& segment : segments) {
    ASSIGN_OR_RETURN(const auto from,
                     image.Bytes(segment.file_offset, segment.file_bytes, "segment"));
    ASSIGN_OR_RETURN(const auto to, memory.Span(segment.at, segment.memory_bytes));
    std::copy(from.begin(), from.end(), to.begin());
    ZeroRam(to.subspan(from.size()));
    range.begin = std::min(range.begin, segment.at);
    range.end = std::max(range.end, segment.at + segment.memory_bytes);
  }
  return range;
}

}  // namespace sipi
