// The machine's I/O ports: serial port, PM timer, exit port, doorbell, charge port, and what else a
// payload's board has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "vmm/device/more_ports.h"
#include "vmm/device/port_action.h"
#include "vmm/device/serial_16550.h"

namespace sipi {

// Any thread; the bus itself does not change after construction.
class PortBus {
 public:
  // `more` may be null; it is asked for ports that are none of the bus's own.
  explicit PortBus(Serial16550& serial, MorePorts* more = nullptr) : serial_(serial), more_(more) {}

  struct WriteResult {
    bool handled = false;  // false: nobody is at that port, the write is lost
    PortAction action;
  };
  // A write of `data`, which holds one or more accesses of `size` bytes each (string I/O).
  WriteResult Write(uint16_t port, uint32_t size, std::span<const std::byte> data);

  // A read into `data`, likewise. False: nobody is there; `data` is all ones then.
  bool Read(uint16_t port, uint32_t size, std::span<std::byte> data);

 private:
  WriteResult WriteMore(uint16_t port, uint32_t size, std::span<const std::byte> data);
  bool ReadMore(uint16_t port, uint32_t size, std::span<std::byte> data);

  Serial16550& serial_;
  MorePorts* const more_;
};

}  // namespace sipi
