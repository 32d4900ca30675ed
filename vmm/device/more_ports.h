// Ports beyond those that every machine has: the rest of a PC, where a payload wants one.
#pragma once

#include <cstdint>

#include "vmm/device/port_action.h"

namespace sipi {

// Any thread, many at once.
class MorePorts {
 public:
  virtual ~MorePorts() = default;

  // One access of `size` (1, 2 or 4) bytes. False: nobody is at that port.
  virtual bool ReadPort(uint16_t port, uint32_t size, uint32_t* value) = 0;
  virtual bool WritePort(uint16_t port, uint32_t size, uint32_t value, PortAction* action) = 0;
};

}  // namespace sipi
