// The PC around the CPUs, as far as other people's guests ask for it: fw_cfg, clock and CMOS, reset
// ports, kvm-unit-tests' test device, an empty PCI bus, and the interrupt controllers behind
// InterruptLines.
//
// What a guest may find at which address:
//
// | where                           | what                         | device         |
// | ------------------------------- | ---------------------------- | -------------- |
// | 20H, A0H, 4D0H; 40H-43H, 61H    | 8259, 8254 (or KVM's)        | InterruptLines |
// | FEC00000H                       | I/O APIC (or KVM's)          | InterruptLines |
// | 60H, 64H, 92H, CF9H             | resets                       | ResetPorts     |
// | 70H, 71H                        | clock, CMOS                  | RtcCmos        |
// | 510H, 511H                      | number of CPUs, size of RAM  | FwCfg          |
// | E0H-E7H, 2000H-2017H, FF000000H | test device                  | TestDevice     |
// | 564H                            | the firmware calls the VMM   | load/firmware  |
// | CF8H-CFFH                       | no PCI device                | PciNone        |
//
// Serial port, PM timer, debug-exit port: PortBus.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "apic/regs/types.h"
#include "vmm/board/interrupt_lines.h"
#include "vmm/device/fw_cfg.h"
#include "vmm/device/more_ports.h"
#include "vmm/device/reset_ports.h"
#include "vmm/device/rtc_cmos.h"
#include "vmm/device/test_device.h"

namespace sipi {

// Any thread, many at once.
class Board final : public MorePorts {
 public:
  Board(uint64_t ram_bytes, uint32_t cpus, std::unique_ptr<InterruptLines> lines);

  InterruptLines& lines() { return *lines_; }
  const InterruptLines& lines() const { return *lines_; }

  bool ReadPort(uint16_t port, uint32_t size, uint32_t* value) override;
  bool WritePort(uint16_t port, uint32_t size, uint32_t value, PortAction* action) override;

  // An access of 1 to 8 bytes at a guest address where no RAM is. False: nobody is there.
  bool ReadMmio(Gpa gpa, std::span<std::byte> data);
  bool WriteMmio(Gpa gpa, std::span<const std::byte> data);

 private:
  PortAction WriteReset(uint16_t port, uint32_t size, uint32_t value);
  PortAction WriteTestDevice(uint16_t port, uint32_t size, uint32_t value);

  const std::unique_ptr<InterruptLines> lines_;
  std::mutex mutex_;  // guards what is below
  FwCfg fw_cfg_;
  RtcCmos rtc_;
  ResetPorts reset_;
  TestDevice test_device_;
};

}  // namespace sipi
