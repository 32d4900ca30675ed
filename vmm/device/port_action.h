// What a port write asks of the machine beyond the device itself. Devices are passive: they never
// stop, hold or wake a CPU; the thread that made the access does, from this value.
#pragma once

#include <cstdint>

namespace sipi {

struct PortAction {
  enum class Kind : uint8_t {
    kNone,
    kExit,         // the guest ends the machine; value is what it wrote
    kDoorbell,     // value is an abi::Doorbell
    kYield,        // this CPU spins for what another CPU holds: let that one run
    kCharge,       // value is an abi::Charge: hold this CPU for the profile's latency of that kind
    kInitLine,     // INIT# of every CPU
    kSystemReset,  // the guest resets or reboots the machine
    kFirmware,     // this CPU is in the firmware: load the payload anew and enter it
    kFlushPage,    // take the page at guest address `value` away and give it back
  };
  Kind kind = Kind::kNone;
  uint32_t value = 0;
};

}  // namespace sipi
