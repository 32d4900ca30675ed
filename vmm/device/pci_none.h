// A PCI host bridge that is not there: configuration space reads as all ones, so that whoever scans
// bus 0 finds no device.
//
// Source: PCI Local Bus Specification 3.0, 3.2.2.3.2 "Software Generation of Configuration
// Transactions" (CF8H, CFCH) and 6.1 (vendor ID FFFFH: no device). The address register does not
// read back either, from which Linux concludes that there is no PCI at all. A byte at CF9H is the
// reset control register (reset_ports.h), and asks to be looked up first.
#pragma once

#include <cstdint>

#include "vmm/device/port_access.h"

namespace sipi {

class PciNone {
 public:
  static constexpr bool Claims(uint16_t port) { return port >= 0xcf8 && port <= 0xcff; }
  static constexpr uint32_t Read(uint16_t /*port*/, uint32_t size) { return FloatingBus(size); }
  static constexpr void Write(uint16_t /*port*/, uint32_t /*size*/, uint32_t /*value*/) {}
};

}  // namespace sipi
