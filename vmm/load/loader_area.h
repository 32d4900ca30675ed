// Where a loader puts what it hands over besides the image: information blocks, modules, page
// tables, a stack.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "apic/regs/types.h"
#include "vmm/load/segments.h"
#include "vmm/memory/guest_memory.h"

namespace sipi {

inline constexpr uint64_t kLoaderPageBytes = 4096;

constexpr uint64_t RoundUpToPage(uint64_t value) {
  return (value + kLoaderPageBytes - 1) / kLoaderPageBytes * kLoaderPageBytes;
}

// The start of `bytes` of RAM below 3 GiB, on a page's boundary, out of the image's way. First
// choice is the end of conventional memory below 9F000H, down to 10000H: payloads with real-mode
// code use what lies lower, and take what follows their image for free memory. Where that does not
// do, it is the page after the image. Error: ResourceExhausted with the number of bytes.
absl::StatusOr<Gpa> FindLoaderArea(uint64_t bytes, const GpaRange& image,
                                   const GuestMemory& memory);

}  // namespace sipi
