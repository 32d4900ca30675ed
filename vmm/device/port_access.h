// Accesses wider than a register: on the ISA bus, a wide access to byte-wide ports is one access
// per byte, at consecutive ports and in ascending order.
//
// Every device of this folder has the same shape: Claims(port) says which ports are its own,
// Read(port, size) returns a zero-extended value, Write(port, size, value) returns what the machine
// must do because of it. `size` is 1, 2 or 4. Devices know no threads: the caller serialises.
#pragma once

#include <cstdint>

namespace sipi {

// What a read of `size` bytes gives where nobody answers.
constexpr uint32_t FloatingBus(uint32_t size) {
  return size >= 4 ? 0xffff'ffffu : (1u << 8 * size) - 1;
}

// `read_byte(port)` returns the byte at one port.
template <class ReadByte>
constexpr uint32_t ReadByteByByte(uint16_t port, uint32_t size, ReadByte&& read_byte) {
  uint32_t value = 0;
  for (uint32_t i = 0; i < size && i < 4; ++i) {
    const uint8_t byte = read_byte(static_cast<uint16_t>(port + i));
    value |= static_cast<uint32_t>(byte) << 8 * i;
  }
  return value;
}

// `write_byte(port, byte)` takes the byte for one port.
template <class WriteByte>
constexpr void WriteByteByByte(uint16_t port, uint32_t size, uint32_t value,
                               WriteByte&& write_byte) {
  for (uint32_t i = 0; i < size && i < 4; ++i) {
    write_byte(static_cast<uint16_t>(port + i), static_cast<uint8_t>(value >> 8 * i));
  }
}

}  // namespace sipi
