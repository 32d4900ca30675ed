// Guest code for the tests of the machine: a few real-mode instructions each (payloads.S). The code
// is position independent; the tests put it where kBootGpa, kApGpa and kHandlerGpa say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sipi {

inline constexpr uint64_t kBootGpa = 0x7000;
inline constexpr uint64_t kApGpa = 0x8000;  // SIPI vector 8
inline constexpr uint64_t kHandlerGpa = 0x9000;

// Words that payloads and tests share.
inline constexpr uint64_t kTotalGpa = 0x500;   // counts of all CPUs together
inline constexpr uint64_t kReadyGpa = 0x504;   // APs that are ready
inline constexpr uint64_t kRoundsGpa = 0x508;  // rounds to go
inline constexpr uint64_t kApsGpa = 0x50c;     // number of APs
inline constexpr uint64_t kCountGpa = 0x600;   // uint32_t per APIC ID

#define SIPI_PAYLOAD(name)                                                 \
  extern "C" const unsigned char payload_##name[];                         \
  extern "C" const unsigned char payload_##name##_end[];                   \
  inline std::span<const std::byte> name() {                               \
    return std::as_bytes(std::span(payload_##name, payload_##name##_end)); \
  }

namespace payload {
// Boot CPU.
SIPI_PAYLOAD(boot_exit)             // writes 0x31 to the exit port
SIPI_PAYLOAD(boot_halt)             // CLI; HLT
SIPI_PAYLOAD(boot_spin)             // endless loop, interrupts off
SIPI_PAYLOAD(boot_start_then_exit)  // all-but-self INIT, SIPI, SIPI; waits for every AP; exits
SIPI_PAYLOAD(boot_start_then_halt)
SIPI_PAYLOAD(
    boot_restart_one)    // [kRounds] times INIT, SIPI, SIPI to APIC ID 1, waits for its count
SIPI_PAYLOAD(boot_ring)  // starts all, sends vector 0x40 to ID 1, then halts with interrupts on
SIPI_PAYLOAD(boot_ring_spinning)  // likewise, then spins with interrupts on
SIPI_PAYLOAD(boot_nmi)            // starts all, sends an NMI to ID 1, halts
SIPI_PAYLOAD(boot_timer_halt)     // one-shot timer of its APIC, then halts with interrupts on
SIPI_PAYLOAD(boot_timer_spin)     // likewise, but spins
SIPI_PAYLOAD(boot_deadline_halt)  // TSC deadline, then halts with interrupts on
SIPI_PAYLOAD(boot_print)    // REP OUTSB of [kRounds] times 4096 bytes at 0x10000 to the serial port
SIPI_PAYLOAD(boot_popcnt)   // an instruction that some KVMs cannot emulate, then exits
SIPI_PAYLOAD(boot_wild_io)  // reads and writes ports and MSRs where nothing is, then exits
SIPI_PAYLOAD(boot_charge)   // charges for Charge::kIdentify, then exits
SIPI_PAYLOAD(boot_dump_apic_base)  // IA32_APIC_BASE to kTotalGpa, then exits
// APs.
SIPI_PAYLOAD(ap_count_and_halt)  // counts itself at kCountGpa, then kReadyGpa, halts with IF=0
SIPI_PAYLOAD(ap_ring)            // ready for vector 0x40, halts with interrupts on
SIPI_PAYLOAD(ap_ring_spinning)   // ready for vector 0x40, spins with interrupts on
SIPI_PAYLOAD(ap_init_boot_cpu)   // sends an INIT to ID 0, halts
// Handlers.
SIPI_PAYLOAD(
    handler_ring)  // counts kTotal; sends the vector on to the next ID, or exits at kRounds
SIPI_PAYLOAD(handler_exit)  // EOI, writes 0x31 to the exit port
}  // namespace payload

}  // namespace sipi
