// The local APIC's register map. Freestanding.
//
// Source: SDM vol 3A, 11.4.1 "The Local APIC Block Diagram", table 11-1 (xAPIC offsets)
// and 11.12.1.2 "x2APIC Register Address Space", table 11-6 (an x2APIC MSR is 0x800 + offset / 16).
// Which register exists in which mode: apic/model/register_map.h.
#pragma once

#include <cstdint>

namespace sipi::apic {

// xAPIC byte offsets from the APIC base page.
enum class Reg : uint16_t {
  kId = 0x020,            // Local APIC ID
  kVersion = 0x030,       // Version, max LVT entry
  kTpr = 0x080,           // Task priority
  kApr = 0x090,           // Arbitration priority (xAPIC only)
  kPpr = 0x0a0,           // Processor priority
  kEoi = 0x0b0,           // End of interrupt
  kRrd = 0x0c0,           // Remote read (xAPIC only)
  kLdr = 0x0d0,           // Logical destination
  kDfr = 0x0e0,           // Destination format (xAPIC only)
  kSvr = 0x0f0,           // Spurious interrupt vector
  kIsr0 = 0x100,          // In service, 8 x 32 bits
  kTmr0 = 0x180,          // Trigger mode, 8 x 32 bits
  kIrr0 = 0x200,          // Interrupt request, 8 x 32 bits
  kEsr = 0x280,           // Error status
  kLvtCmci = 0x2f0,       // LVT corrected machine check
  kIcrLow = 0x300,        // Interrupt command, bits 31:0 (64 bits wide in x2APIC mode)
  kIcrHigh = 0x310,       // Interrupt command, bits 63:32 (xAPIC only)
  kLvtTimer = 0x320,      // LVT timer
  kLvtThermal = 0x330,    // LVT thermal sensor
  kLvtPerf = 0x340,       // LVT performance counters
  kLvtLint0 = 0x350,      // LVT LINT0
  kLvtLint1 = 0x360,      // LVT LINT1
  kLvtError = 0x370,      // LVT error
  kTimerInitial = 0x380,  // Timer initial count
  kTimerCurrent = 0x390,  // Timer current count
  kTimerDivide = 0x3e0,   // Timer divide configuration
  kSelfIpi = 0x3f0,       // Self IPI (x2APIC only)
};

inline constexpr uint64_t kApicBaseGpa = 0xfee00000;  // default base of the xAPIC page, 11.4.1
inline constexpr uint32_t kX2ApicMsrFirst = 0x800;    // 11.12.1.2
inline constexpr uint32_t kX2ApicMsrLast = 0x8ff;

constexpr uint32_t X2ApicMsr(Reg reg) { return kX2ApicMsrFirst + static_cast<uint32_t>(reg) / 16; }

// IA32_APIC_BASE (MSR 1BH), SDM vol 3A, 11.4.4 and 11.12.1.
inline constexpr uint32_t kMsrApicBase = 0x1b;
inline constexpr uint64_t kApicBaseBsp = 1u << 8;
inline constexpr uint64_t kApicBaseX2Apic = 1u << 10;  // EXTD
inline constexpr uint64_t kApicBaseEnable = 1u << 11;  // EN

inline constexpr uint32_t kMsrTscDeadline = 0x6e0;  // IA32_TSC_DEADLINE, 11.5.4.1

inline constexpr uint32_t kSvrReset = 0x000000ff;      // 11.4.7.1
inline constexpr uint32_t kSvrEnable = 1u << 8;        // APIC software enable, 11.9
inline constexpr uint32_t kSvrFocus = 1u << 9;         // focus checking; no meaning since Pentium 4
inline constexpr uint32_t kSvrSuppressEoi = 1u << 12;  // no EOI broadcast, 11.8.5
inline constexpr uint32_t kVersionDirectedEoi = 1u << 24;  // that bit can be set, 11.4.8
inline constexpr uint32_t kLvtMasked = 1u << 16;           // 11.5.1; also every LVT's reset value
inline constexpr uint32_t kLvtTimerOneShot = 0u << 17;
inline constexpr uint32_t kLvtTimerPeriodic = 1u << 17;
inline constexpr uint32_t kLvtTimerTscDeadline = 2u << 17;

}  // namespace sipi::apic
