// A minimal fw_cfg: how a guest asks its VMM for the number of CPUs and the size of RAM.
//
// Source: QEMU, docs/specs/fw_cfg. Selector (16 bits, write-only) at port 510H, data (bytes) at
// 511H. The caller serialises; a guest that asks from two CPUs at once needs a lock of its own, as
// everywhere.
//
// Not modelled: the file directory (it reads as zeros: no files), DMA, writes to data, the
// architecture's own keys. As the source says, unknown keys and what lies past an item's end read
// as 0.
#pragma once

#include <cstdint>

namespace sipi {

class FwCfg {
 public:
  static constexpr bool Claims(uint16_t port) { return port == kSelector || port == kData; }

  FwCfg(uint64_t ram_bytes, uint32_t cpus) : ram_bytes_(ram_bytes), cpus_(cpus) {}

  uint32_t Read(uint16_t port, uint32_t size);
  void Write(uint16_t port, uint32_t size, uint32_t value);

 private:
  static constexpr uint16_t kSelector = 0x510;
  static constexpr uint16_t kData = 0x511;

  struct Item {
    uint64_t value = 0;  // little-endian bytes
    uint32_t bytes = 0;
  };
  Item Selected() const;

  uint64_t ram_bytes_;
  uint32_t cpus_;
  uint16_t selector_ = 0;
  uint32_t offset_ = 0;
};

}  // namespace sipi
