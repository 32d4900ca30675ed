// The machine's I/O ports: serial port, PM timer, exit port, doorbell, charge port.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "vmm/device/port_action.h"
#include "vmm/device/serial_16550.h"

namespace sipi {

// Any thread; the bus itself does not change after construction.
class PortBus {
 public:
  explicit PortBus(Serial16550& serial) : serial_(serial) {}

  struct WriteResult {
    bool handled = false;  // false: nobody is at that port, the write is lost
    PortAction action;
  };
  // A write of `data`, which holds one or more accesses of `size` bytes each (string I/O).
  WriteResult Write(uint16_t port, uint32_t size, std::span<const std::byte> data);

  // A read into `data`, likewise. False: nobody is there; `data` is all ones then.
  bool Read(uint16_t port, uint32_t size, std::span<std::byte> data);

 private:
  Serial16550& serial_;
};

}  // namespace sipi
