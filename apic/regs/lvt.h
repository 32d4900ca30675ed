// The local vector table's entries: which bits each has, and what they mean. Freestanding.
//
// Source: SDM vol 3A, 11.5.1 "Local Vector Table", figure 11-8. Not here: AMD's extended entries.
#pragma once

#include <cstddef>
#include <cstdint>

#include "apic/regs/icr.h"
#include "apic/regs/registers.h"
#include "apic/regs/types.h"

namespace sipi::apic {

enum class LvtEntry : uint8_t {
  kCmci = 0,     // corrected machine check, only where IA32_MCG_CAP[10] says so
  kTimer = 1,    // APIC timer
  kThermal = 2,  // thermal sensor
  kPerf = 3,     // performance counters; masks itself when it delivers
  kLint0 = 4,    // LINT0 pin, by convention the 8259's INTR (ExtINT)
  kLint1 = 5,    // LINT1 pin, by convention NMI
  kError = 6,    // APIC error, see error_status.h
};
inline constexpr size_t kLvtEntryCount = 7;

constexpr Reg LvtReg(LvtEntry entry) {
  constexpr Reg kRegs[kLvtEntryCount] = {Reg::kLvtCmci, Reg::kLvtTimer, Reg::kLvtThermal,
                                         Reg::kLvtPerf, Reg::kLvtLint0, Reg::kLvtLint1,
                                         Reg::kLvtError};
  return kRegs[static_cast<size_t>(entry)];
}

inline constexpr uint32_t kLvtVectorMask = 0xff;
inline constexpr uint32_t kLvtDeliveryModeMask = 7u << 8;  // not in the timer and error entries
inline constexpr uint32_t kLvtDeliveryStatus = 1u << 12;   // read-only
inline constexpr uint32_t kLvtActiveLow = 1u << 13;        // LINT0 and LINT1 only
inline constexpr uint32_t kLvtRemoteIrr = 1u << 14;        // read-only, LINT0 and LINT1 only
inline constexpr uint32_t kLvtLevelTriggered = 1u << 15;   // LINT0 and LINT1 only
inline constexpr uint32_t kLvtTimerModeMask = 3u << 17;    // timer only

// The bits that software can change.
constexpr uint32_t LvtWritable(LvtEntry entry) {
  constexpr uint32_t kCommon = kLvtVectorMask | kLvtMasked;
  constexpr uint32_t kPin = kLvtDeliveryModeMask | kLvtActiveLow | kLvtLevelTriggered;
  switch (entry) {
    case LvtEntry::kTimer:
      return kCommon | kLvtTimerModeMask;
    case LvtEntry::kLint0:
    case LvtEntry::kLint1:
      return kCommon | kPin;
    case LvtEntry::kError:
      return kCommon;
    default:
      return kCommon | kLvtDeliveryModeMask;
  }
}

// The bits that read as the APIC sets them and that a write leaves alone. They are not reserved: in
// x2APIC mode writing 1 to them does not fault.
constexpr uint32_t LvtReadOnly(LvtEntry entry) {
  const bool pin = entry == LvtEntry::kLint0 || entry == LvtEntry::kLint1;
  return kLvtDeliveryStatus | (pin ? kLvtRemoteIrr : 0);
}

constexpr Vector LvtVector(uint32_t lvt) { return Vector(static_cast<uint8_t>(lvt)); }
constexpr DeliveryMode LvtDeliveryMode(uint32_t lvt) {
  return static_cast<DeliveryMode>(lvt >> 8 & 7);
}

enum class TimerMode : uint8_t {  // LVT timer bits 18:17
  kOneShot = 0,
  kPeriodic = 1,
  kTscDeadline = 2,
  kReserved = 3,
};
constexpr TimerMode LvtTimerMode(uint32_t lvt) { return static_cast<TimerMode>(lvt >> 17 & 3); }

static_assert(LvtWritable(LvtEntry::kTimer) == 0x000700ff);
static_assert(LvtWritable(LvtEntry::kLint0) == 0x0001a7ff);
static_assert(LvtWritable(LvtEntry::kError) == 0x000100ff);
static_assert(LvtWritable(LvtEntry::kPerf) == 0x000107ff);

}  // namespace sipi::apic
