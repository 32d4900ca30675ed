// Turns the bytes of a fuzzer into values, front to back, little-endian. Past the end all bytes are
// 0, so that every input means something and a shorter one means nearly the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sipi::apic::fuzz {

class ByteReader {
 public:
  explicit ByteReader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  bool AtEnd() const { return next_ >= bytes_.size(); }
  uint8_t U8() { return AtEnd() ? uint8_t{0} : bytes_[next_++]; }
  uint16_t U16() { return static_cast<uint16_t>(Bytes(2)); }
  uint32_t U32() { return static_cast<uint32_t>(Bytes(4)); }
  uint64_t U64() { return Bytes(8); }

 private:
  uint64_t Bytes(unsigned count) {
    uint64_t value = 0;
    for (unsigned i = 0; i < count; ++i) value |= uint64_t{U8()} << 8 * i;
    return value;
  }

  std::span<const uint8_t> bytes_;
  size_t next_ = 0;
};

}  // namespace sipi::apic::fuzz
