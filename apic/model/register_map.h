// Which registers exist in which mode, how they may be accessed, and their reserved bits.
//
// Source: SDM vol 3A, table 11-1 "Local APIC Register Address Map" (xAPIC) and table 11-6 "Local
// APIC Register Address Map Supported by x2APIC", 11.12.1.3 "Reserved Bit Checking".
//
// Where the SDM leaves a choice: writing 1 to a read-only status bit (delivery status, remote IRR)
// in x2APIC mode does not fault. 11.12.9 removes the ICR's delivery status without saying whether
// the bit is reserved; Intel's processors ignore it.
#pragma once

#include <cstdint>

#include "apic/model/local_apic.h"
#include "apic/regs/lvt.h"
#include "apic/regs/registers.h"
#include "apic/regs/timer.h"

namespace sipi::apic {

enum class Access : uint8_t { kReserved, kReadOnly, kWriteOnly, kReadWrite };

// The ICR's defined bits below 32. Bit 12, delivery status, is read-only: ignored, no fault.
inline constexpr uint32_t kIcrLowWritable = 0x000ccfff;

// The SVR's defined bits. Bit 9, focus checking, is reserved since the Pentium 4 but must not
// fault: 32-bit Linux sets it in x2APIC mode too.
constexpr uint32_t SvrWritable(const ApicConfig& config) {
  return 0xff | kSvrEnable | kSvrFocus | (config.has_directed_eoi ? kSvrSuppressEoi : 0);
}

// `offset` counts bytes into the register page; an x2APIC MSR's is (msr - 800H) * 16.
constexpr Access RegisterAccess(uint32_t offset, bool x2apic, const ApicConfig& config) {
  if (offset % 16 != 0) return Access::kReserved;
  if (offset >= 0x100 && offset < 0x280) return Access::kReadOnly;  // ISR, TMR, IRR
  switch (static_cast<Reg>(offset)) {
    case Reg::kId:
    case Reg::kVersion:
    case Reg::kPpr:
    case Reg::kTimerCurrent:
      return Access::kReadOnly;
    case Reg::kTpr:
    case Reg::kSvr:
    case Reg::kEsr:
    case Reg::kIcrLow:
    case Reg::kLvtTimer:
    case Reg::kLvtThermal:
    case Reg::kLvtPerf:
    case Reg::kLvtLint0:
    case Reg::kLvtLint1:
    case Reg::kLvtError:
    case Reg::kTimerInitial:
    case Reg::kTimerDivide:
      return Access::kReadWrite;
    case Reg::kLvtCmci:
      return config.has_cmci ? Access::kReadWrite : Access::kReserved;
    case Reg::kEoi:
      return Access::kWriteOnly;
    case Reg::kSelfIpi:
      return x2apic ? Access::kWriteOnly : Access::kReserved;
    case Reg::kLdr:
      return x2apic ? Access::kReadOnly : Access::kReadWrite;
    case Reg::kDfr:
    case Reg::kIcrHigh:
      return x2apic ? Access::kReserved : Access::kReadWrite;
    case Reg::kApr:  // table 11-1, note: not supported since the Pentium 4, but no error either;
                     // both read 0
    case Reg::kRrd:
      return x2apic ? Access::kReserved : Access::kReadOnly;
    default:
      return Access::kReserved;
  }
}

// The LVT entry at an offset; kLvtEntryCount if there is none.
constexpr size_t LvtIndexOf(Reg reg) {
  switch (reg) {
    case Reg::kLvtCmci:
      return static_cast<size_t>(LvtEntry::kCmci);
    case Reg::kLvtTimer:
      return static_cast<size_t>(LvtEntry::kTimer);
    case Reg::kLvtThermal:
      return static_cast<size_t>(LvtEntry::kThermal);
    case Reg::kLvtPerf:
      return static_cast<size_t>(LvtEntry::kPerf);
    case Reg::kLvtLint0:
      return static_cast<size_t>(LvtEntry::kLint0);
    case Reg::kLvtLint1:
      return static_cast<size_t>(LvtEntry::kLint1);
    case Reg::kLvtError:
      return static_cast<size_t>(LvtEntry::kError);
    default:
      return kLvtEntryCount;
  }
}

// As LvtWritable, but without TSC-deadline mode bit 18 of the timer's entry is reserved.
constexpr uint32_t LvtWritableHere(LvtEntry entry, const ApicConfig& config) {
  const bool no_deadline = entry == LvtEntry::kTimer && !config.has_tsc_deadline;
  return LvtWritable(entry) & ~(no_deadline ? 1u << 18 : 0);
}

// The bits of a writable x2APIC register that fault when written as 1.
constexpr uint64_t X2ApicReservedBits(Reg reg, const ApicConfig& config) {
  const size_t lvt = LvtIndexOf(reg);
  if (lvt < kLvtEntryCount) {
    const LvtEntry entry = static_cast<LvtEntry>(lvt);
    return ~uint64_t{LvtWritableHere(entry, config) | LvtReadOnly(entry)};
  }
  switch (reg) {
    case Reg::kTpr:
    case Reg::kSelfIpi:
      return ~uint64_t{0xff};
    case Reg::kSvr:
      return ~uint64_t{SvrWritable(config)};
    case Reg::kIcrLow:
      return uint32_t{~(kIcrLowWritable | kIcrDeliveryStatus)};  // all of 63:32 is destination
    case Reg::kTimerInitial:
      return ~uint64_t{0xffffffff};
    case Reg::kTimerDivide:
      return ~uint64_t{kTimerDivideWritable};
    default:
      return ~uint64_t{0};  // EOI and ESR take only 0
  }
}

}  // namespace sipi::apic
