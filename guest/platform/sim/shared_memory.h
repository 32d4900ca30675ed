// The simulated machine's memory, and what its cache lines cost.
//
// A line belongs to the CPU that wrote it last, until another CPU reads it (then both have it) or
// writes it. A CPU that has it pays next to nothing; any other pays a transfer, and the transfers
// of one line follow each other: with N CPUs at a lock each hand-over costs up to N of them. Only
// words that are accessed atomically are looked at: they are what CPUs share.
// Of the CPUs that only read a line the last one is remembered, so a line that many read in turn is
// dearer than on hardware; lines of that kind do not occur on the way up.
#pragma once

#include <cstddef>
#include <cstdint>

#include "guest/platform/sim/cpu.h"

namespace sipi::sim {

inline constexpr uint64_t kLineBytes = 64;

struct Line {
  uint64_t busy_until_ns = 0;
  Cpu* first_waiter = nullptr;  // CPUs that spin on a word of it, first come first
  Cpu* last_waiter = nullptr;
  uint32_t writer = 0;  // CPU number + 1; 0: none, it is in memory
  uint32_t reader = 0;  // likewise: the last that read it since
};

class Memory {
 public:
  Memory() = default;
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Zeroed memory; nothing is touched. False, with errno set: there is no address space. Once.
  bool Reserve(uint64_t bytes);

  std::byte* base() const { return base_; }
  uint64_t bytes() const { return bytes_; }
  bool Contains(const void* address) const { return OffsetOf(address) < bytes_; }
  uint64_t OffsetOf(const void* address) const {
    return reinterpret_cast<uint64_t>(address) - reinterpret_cast<uint64_t>(base_);
  }
  // Zeroes a part again, lines and all.
  void Clear(uint64_t begin, uint64_t end);
  Line& LineAt(uint64_t offset) { return lines_[offset / kLineBytes]; }

 private:
  std::byte* base_ = nullptr;
  Line* lines_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace sipi::sim
