// A PC's programmable interval timer: three 8254 counters at ports 40H to 43H, and port 61H, which
// gates counter 2 and shows its output.
//
// Source: Intel, 8254 data sheet (order number 231164), "Control Word Format", "Counter Latch
// Command", "Read-Back Command"; port 61H: any Intel I/O controller hub's data sheet, register
// NMI_SC. Time is nanoseconds of any clock that does not go back. The caller serialises.
//
// Counter 0 drives IRQ 0 (input 0 of the 8259, input 2 of an I/O APIC), 1 nothing (it refreshed
// memory), 2 the speaker. GATE of counters 0 and 1 is always high.
// Not modelled: the speaker; the system errors and NMI enables of port 61H (bits 2 and 3 can be
// written and do nothing). See also i8254_counter.h.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "vmm/device/i8254_counter.h"

namespace sipi {

inline constexpr uint64_t kPitHz = 1'193'182;

class I8254 {
 public:
  static constexpr bool Claims(uint16_t port) {
    return (port >= kCounter0 && port <= kControl) || port == kSystemControl;
  }

  uint32_t Read(uint16_t port, uint32_t size, uint64_t now_ns);
  // Writes may change when counter 0 interrupts: ask again.
  void Write(uint16_t port, uint32_t size, uint32_t value, uint64_t now_ns);

  // OUT of counter 0, 1 or 2.
  bool Out(uint32_t counter, uint64_t now_ns) const;
  // When OUT next changes, or next rises, after `now_ns`; none if it will not. Exact: at the
  // instant returned it has just changed. For the interrupts that came due while nobody looked,
  // ask again with the instant returned.
  std::optional<uint64_t> NextEdgeNs(uint32_t counter, uint64_t now_ns) const;
  std::optional<uint64_t> NextRisingEdgeNs(uint32_t counter, uint64_t now_ns) const;

 private:
  static constexpr uint16_t kCounter0 = 0x40;
  static constexpr uint16_t kControl = 0x43;
  static constexpr uint16_t kSystemControl = 0x61;

  uint8_t ReadByte(uint16_t port, uint64_t now_ns);
  void WriteByte(uint16_t port, uint8_t value, uint64_t now_ns);
  void WriteControl(uint8_t value, I8254Counter::Ticks now);
  uint8_t ReadSystemControl(uint64_t now_ns) const;

  std::array<I8254Counter, 3> counters_ = MakeCounters();
  uint8_t system_control_ = 0;  // port 61H, bits 3:0

  static std::array<I8254Counter, 3> MakeCounters();
};

}  // namespace sipi
