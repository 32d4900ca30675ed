// Puts the pieces of an image where they belong in guest memory.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apic/regs/types.h"
#include "vmm/load/image_bytes.h"
#include "vmm/memory/guest_memory.h"

namespace sipi {

struct ImageSegment {
  uint64_t header_offset = 0;  // where the file describes it, for errors
  uint64_t file_offset = 0;
  uint64_t file_bytes = 0;
  Gpa at;
  uint64_t memory_bytes = 0;  // what the file does not give is zeroed
};

// The addresses from the lowest to one past the highest.
struct GpaRange {
  Gpa begin;
  Gpa end;
  bool Contains(Gpa gpa) const { return begin <= gpa && gpa < end; }
  bool Overlaps(Gpa gpa, uint64_t bytes) const {
    return gpa < end && begin.value < gpa.value + bytes;
  }
};

// Copies each segment and zeroes its rest, which costs no memory however large it is. Everything is
// checked before anything is written. Errors: InvalidArgument (no segment, one that is cut off,
// larger in the file than in memory, or overlaps another), OutOfRange where RAM is too small.
absl::StatusOr<GpaRange> LoadSegments(const ImageBytes& image,
                                      std::span<const ImageSegment> segments,
                                      const GuestMemory& memory);

// Zeroes guest memory by giving whole pages back to the host.
void ZeroRam(std::span<std::byte> ram);

}  // namespace sipi
