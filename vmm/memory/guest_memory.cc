#include "vmm/memory/guest_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "vmm/base/errno_status.h"
#include "vmm/base/status_macros.h"

namespace sipi {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kLargePageBytes = 2ull << 20;

// Maps `bytes` of anonymous memory at a multiple of 2 MiB, so that guest and host addresses agree
// in their lower bits and both may use large pages. Null and errno if that fails.
std::byte* MapAligned(uint64_t bytes) {
  const uint64_t reserved = bytes + kLargePageBytes;
  void* const at = mmap(nullptr, reserved, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  std::byte* const begin = static_cast<std::byte*>(at);
  const uint64_t beyond = reinterpret_cast<uintptr_t>(at) % kLargePageBytes;
  const uint64_t skip = beyond == 0 ? 0 : kLargePageBytes - beyond;
  if (skip != 0) munmap(begin, skip);
  munmap(begin + skip + bytes, kLargePageBytes - skip);
  return begin + skip;
}

}  // namespace

absl::StatusOr<GuestMemory> GuestMemory::Create(uint64_t bytes) {
  constexpr uint64_t kMaxBytes = 1ull << 46;  // what x86-64 user space can map at all
  if (bytes == 0 || bytes > kMaxBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("guest memory of ", bytes, " bytes; ask for 1 to ", kMaxBytes, " bytes"));
  }
  bytes = (bytes + kPageBytes - 1) & ~(kPageBytes - 1);
  std::byte* const host = MapAligned(bytes);
  if (host == nullptr) {
    return ErrnoStatus(errno, absl::StrCat("mmap of ", bytes, " bytes of guest memory"),
                       "use less memory, or raise ulimit -v");
  }
  // A guest that touches a page for the first time costs some 2 us of the host, a large page some
  // 75 us: from 40 touched pages in 2 MiB on, large ones win. It is a hint, so failure is no error.
  madvise(host, bytes, MADV_HUGEPAGE);
  return GuestMemory(host, bytes);
}

GuestMemory::GuestMemory(GuestMemory&& other) noexcept
    : host_(std::exchange(other.host_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

GuestMemory& GuestMemory::operator=(GuestMemory&& other) noexcept {
  if (this == &other) return *this;
  if (host_ != nullptr) munmap(host_, bytes_);
  host_ = std::exchange(other.host_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

GuestMemory::~GuestMemory() {
  if (host_ != nullptr) munmap(host_, bytes_);
}

std::vector<RamRange> GuestMemory::Ranges() const {
  std::vector<RamRange> ranges = {{Gpa(0), std::min(bytes_, kLowRamLimit)}};
  if (bytes_ > kLowRamLimit) ranges.push_back({Gpa(kHighRamGpa), bytes_ - kLowRamLimit});
  return ranges;
}

absl::Status GuestMemory::RegisterWith(Vm& vm) const {
  uint32_t slot = 0;
  for (const RamRange& range : Ranges()) {
    RETURN_IF_ERROR(
        vm.SetMemoryRegion(slot++, range.gpa, range.bytes, Pointer(range.gpa, range.bytes)));
  }
  return absl::OkStatus();
}

std::byte* GuestMemory::Pointer(Gpa gpa, uint64_t bytes) const {
  const bool high = gpa.value >= kHighRamGpa;
  const uint64_t range_begin = high ? kHighRamGpa : 0;
  const uint64_t host_begin = high ? std::min(bytes_, kLowRamLimit) : 0;
  const uint64_t range_bytes = high ? bytes_ - host_begin : std::min(bytes_, kLowRamLimit);
  const uint64_t offset = gpa.value - range_begin;
  // Subtractions only, so that no sum can wrap.
  if (offset > range_bytes || bytes > range_bytes - offset) return nullptr;
  return host_ + host_begin + offset;
}

absl::Status GuestMemory::OutOfRange(Gpa gpa, uint64_t bytes) const {
  return absl::OutOfRangeError(absl::StrCat("guest address 0x", absl::Hex(gpa.value), " with ",
                                            bytes, " bytes is not in RAM (", bytes_,
                                            " bytes of RAM)"));
}

absl::StatusOr<std::span<std::byte>> GuestMemory::Span(Gpa gpa, uint64_t bytes) const {
  std::byte* host = Pointer(gpa, bytes);
  if (host == nullptr) return OutOfRange(gpa, bytes);
  return std::span<std::byte>(host, bytes);
}

absl::StatusOr<std::span<std::byte>> GuestMemory::AlignedSpan(Gpa gpa, uint64_t bytes,
                                                              uint64_t align) const {
  if (gpa.value % align != 0) {
    return absl::InvalidArgumentError(absl::StrCat("guest address 0x", absl::Hex(gpa.value),
                                                   " is not aligned to ", align, " bytes"));
  }
  return Span(gpa, bytes);
}

absl::Status GuestMemory::Write(Gpa gpa, std::span<const std::byte> data) const {
  ASSIGN_OR_RETURN(const std::span<std::byte> to, Span(gpa, data.size()));
  std::copy(data.begin(), data.end(), to.begin());
  return absl::OkStatus();
}

absl::Status GuestMemory::Read(Gpa gpa, std::span<std::byte> data) const {
  ASSIGN_OR_RETURN(const std::span<std::byte> from, Span(gpa, data.size()));
  std::copy(from.begin(), from.end(), data.begin());
  return absl::OkStatus();
}

}  // namespace sipi
