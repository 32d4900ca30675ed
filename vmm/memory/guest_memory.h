// The guest's RAM: one anonymous mapping, with the hole below 4 GiB where devices live.
//
// RAM up to 3 GiB lies at 0; what is more lies at 4 GiB and up. Every access from the host goes
// through the checked accessors here. Reads and writes of words that a running guest also touches
// go through AtomicAt.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apic/regs/types.h"
#include "vmm/kvm/vm.h"

namespace sipi {

inline constexpr uint64_t kLowRamLimit = 3ull << 30;  // end of RAM below the hole
inline constexpr uint64_t kHighRamGpa = 4ull << 30;   // start of RAM above it

// A contiguous piece of guest RAM.
struct RamRange {
  Gpa gpa;
  uint64_t bytes = 0;
};

class GuestMemory {
 public:
  // Maps `bytes` of zeroed RAM (rounded up to 4 KiB), not reserved: what is not touched costs
  // nothing. Errors: InvalidArgument for 0, the errno of mmap with size and remedy.
  static absl::StatusOr<GuestMemory> Create(uint64_t bytes);
  GuestMemory(GuestMemory&& other) noexcept;
  GuestMemory& operator=(GuestMemory&& other) noexcept;
  ~GuestMemory();

  uint64_t size_bytes() const { return bytes_; }
  // One or two ranges, in ascending order.
  std::vector<RamRange> Ranges() const;

  // Registers the ranges as slots 0 and 1. The memory must outlive the VM's vCPUs.
  absl::Status RegisterWith(Vm& vm) const;

  // True if [gpa, gpa + bytes) is RAM, in one range.
  bool Contains(Gpa gpa, uint64_t bytes) const { return Pointer(gpa, bytes) != nullptr; }

  // Host address of [gpa, gpa + bytes), or null if not all of it is RAM in one range.
  std::byte* Pointer(Gpa gpa, uint64_t bytes) const;

  // As Pointer. Error: OutOfRange naming address, length and the RAM's size.
  absl::StatusOr<std::span<std::byte>> Span(Gpa gpa, uint64_t bytes) const;
  absl::Status Write(Gpa gpa, std::span<const std::byte> data) const;
  absl::Status Read(Gpa gpa, std::span<std::byte> data) const;

  // The T at `gpa`. Errors: OutOfRange; InvalidArgument if `gpa` is not aligned for T.
  template <class T>
  absl::StatusOr<T*> At(Gpa gpa) const {
    static_assert(std::is_trivially_copyable_v<T>);
    auto span = AlignedSpan(gpa, sizeof(T), alignof(T));
    if (!span.ok()) return std::move(span).status();
    return reinterpret_cast<T*>(span->data());
  }

  // The `count` T at `gpa`. Errors as At.
  template <class T>
  absl::StatusOr<std::span<T>> ArrayAt(Gpa gpa, uint64_t count) const {
    static_assert(std::is_trivially_copyable_v<T>);
    if (count > bytes_ / sizeof(T)) return OutOfRange(gpa, count * sizeof(T));
    auto span = AlignedSpan(gpa, count * sizeof(T), alignof(T));
    if (!span.ok()) return std::move(span).status();
    return std::span<T>(reinterpret_cast<T*>(span->data()), count);
  }

  // A word that the guest may touch at the same time. Errors as At.
  template <class T>
  absl::StatusOr<std::atomic_ref<T>> AtomicAt(Gpa gpa) const {
    auto word = At<T>(gpa);
    if (!word.ok()) return std::move(word).status();
    return std::atomic_ref<T>(**word);
  }

 private:
  GuestMemory(std::byte* host, uint64_t bytes) : host_(host), bytes_(bytes) {}
  absl::StatusOr<std::span<std::byte>> AlignedSpan(Gpa gpa, uint64_t bytes, uint64_t align) const;
  absl::Status OutOfRange(Gpa gpa, uint64_t bytes) const;

  std::byte* host_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace sipi
