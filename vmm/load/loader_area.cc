#include "vmm/load/loader_area.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace sipi {
namespace {

constexpr uint64_t kLowBegin = 0x10000;
constexpr uint64_t kLowEnd = 0x9f000;
constexpr uint64_t kMib = 0x100000;

}  // namespace

absl::StatusOr<Gpa> FindLoaderArea(uint64_t bytes, const GpaRange& image,
                                   const GuestMemory& memory) {
  const uint64_t pages = bytes > kLowRamLimit ? kLowRamLimit + 1 : RoundUpToPage(bytes);
  const Gpa candidates[] = {
      Gpa(pages <= kLowEnd - kLowBegin ? kLowEnd - pages : kMib),
      // Never in conventional memory's upper end or the ROMs' area, which are no RAM for the guest.
      Gpa(std::max(RoundUpToPage(image.end.value), kMib)),
      Gpa(kMib),
  };
  for (const Gpa candidate : candidates) {
    const bool low = candidate.value < kLowRamLimit && memory.Contains(candidate, pages);
    if (low && !image.Overlaps(candidate, pages)) return candidate;
  }
  const bool more_helps = memory.Ranges()[0].bytes < kLowRamLimit && pages < kLowRamLimit - kMib;
  return absl::ResourceExhaustedError(
      absl::StrCat("no room for ", bytes, " bytes of loader's data (information, modules, page ",
                   "tables) beside the image, which ends at 0x", absl::Hex(image.end.value),
                   more_helps ? "; give the guest more memory (--memory)"
                              : "; no more memory helps, as they must be below 0xc0000000: give "
                                "less of --append and --env, or a smaller image"));
}

}  // namespace sipi
