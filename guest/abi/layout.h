// The guest-physical map and the ports between guest and VMM. Freestanding.
#pragma once

#include <cstdint>

namespace sipi::abi {

inline constexpr uint64_t kTrampolineGpa = 0x8000;  // page of the AP trampoline; SIPI vector 0x08
inline constexpr uint8_t kTrampolineVector = kTrampolineGpa >> 12;
inline constexpr uint64_t kPvhInfoGpa =
    0x1000;  // hvm_start_info, memory map, module list (the VMM's choice)
inline constexpr uint64_t kImageGpa = 0x100000;  // guest.elf
inline constexpr uint64_t kParamsGpa =
    0x400000;  // BootParams blob (PVH module 0; elsewhere under other VMMs)
inline constexpr uint64_t kArenaGpa =
    0x800000;  // result page, slots, boot CPU's ring, per-CPU blocks

inline constexpr uint16_t kExitPort =
    0xf4;  // 32-bit out: process status (code << 1) | 1, as QEMU's isa-debug-exit
inline constexpr uint16_t kDoorbellPort = 0x560;  // 32-bit out: a Doorbell
inline constexpr uint16_t kChargePort =
    0x562;  // 8-bit out: a Charge kind; the VMM lets the thread sleep for it
inline constexpr uint16_t kPmTimerPort =
    0x608;  // ACPI PM timer (24 bits, 3.579545 MHz, ACPI 6.5, 4.8.3.3)
inline constexpr uint16_t kYieldPort =
    0x80;  // 8-bit out (the POST code port): spinning for another CPU, let it run
inline constexpr uint16_t kSerialPort = 0x3f8;  // 16550 transmit

enum class Doorbell : uint32_t {
  kBeforeKick =
      1,       // the VMM holds the boot CPU until every vCPU exists, where its irqchip needs that
  kReady = 2,  // host-driven bring-up: APs may be kicked now
};

// Vectors of the guest.
inline constexpr uint8_t kTimerVector = 0xec;
inline constexpr uint8_t kWakeVector = 0xf0;        // ends a halted wait
inline constexpr uint8_t kCallVector = 0xfb;        // function call, of all CPUs
inline constexpr uint8_t kCallSingleVector = 0xfa;  // function call, of one CPU
inline constexpr uint8_t kRescheduleVector = 0xfd;  // another thread should run
inline constexpr uint8_t kSpuriousVector = 0xff;

// What a profile may charge for at a step (guest/platform/platform.h, Charge).
enum class Charge : uint8_t {
  kNone = 0,
  kStartup = 1,       // SIPI to first instruction
  kInit = 2,          // INIT
  kMicrocode = 3,     // before alive
  kCacheSetup = 4,    // MTRR and PAT
  kIdentify = 5,      // CPU identification and feature set-up in STARTING
  kOnlineSteps = 6,   // ONLINE section
  kSchedDomains = 7,  // scheduling domains built anew when a CPU becomes active or no longer is
};

}  // namespace sipi::abi
