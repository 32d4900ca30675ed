// The local APIC's registers as software sees them: by MSR in x2APIC mode, by MMIO in xAPIC mode.
//
// Source: SDM vol 3A, 11.4.1 and table 11-1; 11.12.1.2 and table 11-6; 11.12.1.3 for the faults.
// 11.4.1 wants 32-bit accesses at multiples of 16 and leaves all others undefined; here:
// - A load of fewer bytes within bytes 0 to 3 of a register gives that part of it.
// - Any load that touches bytes 4 to 15 gives 0; any store but of 4 bytes at byte 0 does nothing.
// - Where the 16 bytes are reserved, the access is an illegal register address all the same.
// What is left out: local_apic.h.
#include "apic/model/local_apic.h"
#include "apic/model/register_map.h"
#include "apic/regs/destination.h"
#include "apic/regs/error_status.h"

namespace sipi::apic {
namespace {

using Kind = WriteEffect::Kind;

}  // namespace

ReadResult LocalApic::ReadMsr(uint32_t msr, Time now) {
  if (mode() != ApicMode::kX2Apic || msr < kX2ApicMsrFirst || msr > kX2ApicMsrLast)
    return {true, 0};
  const uint32_t offset = (msr - kX2ApicMsrFirst) * 16;
  const Access access = RegisterAccess(offset, true, config_);
  if (access == Access::kReserved || access == Access::kWriteOnly) return {true, 0};
  const Reg reg = static_cast<Reg>(offset);
  if (reg == Reg::kIcrLow) return {false, uint64_t{icr_dest_} << 32 | icr_low_};
  return {false, ReadRegister(reg, now)};
}

WriteEffect LocalApic::WriteMsr(uint32_t msr, uint64_t value, Time now) {
  if (mode() != ApicMode::kX2Apic || msr < kX2ApicMsrFirst || msr > kX2ApicMsrLast)
    return WriteEffect::Fault();
  const uint32_t offset = (msr - kX2ApicMsrFirst) * 16;
  const Access access = RegisterAccess(offset, true, config_);
  if (access == Access::kReserved || access == Access::kReadOnly) return WriteEffect::Fault();
  const Reg reg = static_cast<Reg>(offset);
  if ((value & X2ApicReservedBits(reg, config_)) != 0) return WriteEffect::Fault();
  const uint32_t low = static_cast<uint32_t>(value);
  if (reg == Reg::kIcrLow) return WriteIcr(low, static_cast<uint32_t>(value >> 32));
  if (reg == Reg::kSelfIpi) {
    // 11.12.11: as an ICR write with shorthand self, fixed, edge; the ICR itself keeps its value.
    const uint32_t icr_low = icr_low_;
    const uint32_t icr_dest = icr_dest_;
    WriteEffect effect = WriteIcr(low | kIcrAssert | 1u << 18, 0);
    icr_low_ = icr_low;
    icr_dest_ = icr_dest;
    return effect;
  }
  return WriteRegister(reg, low, now);
}

// An access whose effect the SDM leaves undefined does nothing, but reserved stays reserved.
void LocalApic::TouchRegister(uint32_t offset) {
  const uint32_t reg = offset & ~15u;
  if (RegisterAccess(reg, false, config_) == Access::kReserved) LogError(kEsrIllegalRegister);
}

uint64_t LocalApic::LoadMmio(uint32_t offset, uint32_t bytes, Time now) {
  const uint64_t mask = bytes >= 8 ? ~uint64_t{0} : (uint64_t{1} << bytes * 8) - 1;
  if (mode() != ApicMode::kXApic) return mask;
  if (offset % 16 + bytes > 4) {
    TouchRegister(offset);
    return 0;
  }
  return uint64_t{ReadMmio(offset & ~15u, now)} >> offset % 16 * 8 & mask;
}

WriteEffect LocalApic::StoreMmio(uint32_t offset, uint32_t bytes, uint64_t value, Time now) {
  if (bytes == 4) return WriteMmio(offset, static_cast<uint32_t>(value), now);
  if (mode() == ApicMode::kXApic) TouchRegister(offset);
  return {};
}

uint32_t LocalApic::ReadMmio(uint32_t offset, Time now) {
  if (mode() != ApicMode::kXApic) return ~0u;  // 11.12.2: the page is not there
  if (offset % 16 != 0) {
    TouchRegister(offset);
    return 0;
  }
  switch (RegisterAccess(offset, false, config_)) {
    case Access::kReserved:
      LogError(kEsrIllegalRegister);
      return 0;
    case Access::kWriteOnly:
      return 0;
    default:
      return ReadRegister(static_cast<Reg>(offset), now);
  }
}

WriteEffect LocalApic::WriteMmio(uint32_t offset, uint32_t value, Time now) {
  if (mode() != ApicMode::kXApic) return {};
  if (offset % 16 != 0) {
    TouchRegister(offset);
    return {};
  }
  if (config_.has_writable_xapic_id && static_cast<Reg>(offset) == Reg::kId) {
    written_id_ = static_cast<uint8_t>(value >> 24);
    return WriteEffect::Of(Kind::kRouting);
  }
  switch (RegisterAccess(offset, false, config_)) {
    case Access::kReserved:
      LogError(kEsrIllegalRegister);
      return {};
    case Access::kReadOnly:
      return {};
    default:
      return WriteRegister(static_cast<Reg>(offset), value, now);
  }
}

// Precondition: the register exists and can be read in the present mode.
uint32_t LocalApic::ReadRegister(Reg reg, Time now) {
  const size_t lvt_index = LvtIndexOf(reg);
  if (lvt_index < kLvtEntryCount) return lvt_[lvt_index];
  const uint32_t offset = static_cast<uint32_t>(reg);
  if (offset >= 0x100 && offset < 0x280) {
    const VectorBitmap& bitmap = offset < 0x180 ? isr_ : offset < 0x200 ? tmr_ : irr_;
    return bitmap.Register(offset % 0x80 / 16);
  }
  switch (reg) {
    case Reg::kId:
      if (mode() == ApicMode::kX2Apic) return id_.value;
      return written_id_.value_or(static_cast<uint8_t>(id_.value)) * 0x0100'0000u;
    case Reg::kVersion:
      return VersionRegister();
    case Reg::kTpr:
      return tpr_;
    case Reg::kPpr:
      return Ppr();
    case Reg::kLdr:
      return Ldr();
    case Reg::kDfr:
      return dfr_;
    case Reg::kSvr:
      return svr_;
    case Reg::kEsr:
      return esr_;
    case Reg::kIcrLow:  // delivery status: "idle", a message leaves at once
      return icr_low_;
    case Reg::kIcrHigh:
      return icr_dest_ << 24;
    case Reg::kTimerInitial:
      return timer_.initial_count();
    case Reg::kTimerCurrent:
      Advance(now);
      return timer_.CurrentCount(now);
    case Reg::kTimerDivide:
      return timer_.divide_config();
    default:
      return 0;  // APR, RRD
  }
}

// Precondition: the register exists and can be written in the present mode; in x2APIC mode the
// reserved bits are 0.
WriteEffect LocalApic::WriteRegister(Reg reg, uint32_t value, Time now) {
  const size_t lvt_index = LvtIndexOf(reg);
  if (lvt_index < kLvtEntryCount) return WriteLvt(static_cast<LvtEntry>(lvt_index), value, now);
  switch (reg) {
    case Reg::kTpr:
      tpr_ = static_cast<uint8_t>(value);
      return WriteEffect::Of(Kind::kPriority);
    case Reg::kEoi:
      return EndOfInterrupt();
    case Reg::kLdr:
      ldr_ = value & kLdrXApicMask;
      return WriteEffect::Of(Kind::kRouting);
    case Reg::kDfr:
      dfr_ = value | kDfrFixedOnes;
      return WriteEffect::Of(Kind::kRouting);
    case Reg::kSvr:
      return WriteSvr(value, now);
    case Reg::kEsr:
      // "This write clears any previously logged errors and updates the ESR with any errors
      // detected since the last write to the ESR. This write also rearms the APIC error interrupt
      // triggering mechanism."
      esr_ = pending_errors_;
      pending_errors_ = 0;
      error_armed_ = true;
      return {};
    case Reg::kIcrLow:
      return WriteIcr(value, icr_dest_);
    case Reg::kIcrHigh:
      icr_dest_ = value >> 24;
      return {};
    case Reg::kTimerInitial:
      Advance(now);
      timer_.SetInitialCount(value, now);
      return WriteEffect::Of(Kind::kTimer);
    case Reg::kTimerDivide:
      Advance(now);
      timer_.SetDivide(value, now);
      return WriteEffect::Of(Kind::kTimer);
    default:
      return {};
  }
}

// 11.6.1 and 11.12.9.
WriteEffect LocalApic::WriteIcr(uint32_t low, uint32_t dest) {
  icr_low_ = low & kIcrLowWritable;
  icr_dest_ = dest;
  if (!config_.has_lowest_priority_ipi &&
      Icr::FromLow(low, dest).mode == DeliveryMode::kLowestPriority) {
    // 11.5.3, bit 5: the vector is not even looked at.
    LogError(kEsrRedirectableIpi);
    return {};
  }
  WriteEffect effect = WriteEffect::Of(Kind::kIpi);
  effect.icr = Icr::FromLow(icr_low_, dest);
  const Icr& icr = effect.icr;
  const bool fixed = icr.mode == DeliveryMode::kFixed;
  if ((fixed || icr.mode == DeliveryMode::kLowestPriority) && IsIllegalVector(icr.vector)) {
    LogError(kEsrSendIllegalVector);
  }
  ++counters_.ipi_sent[static_cast<size_t>(icr.mode)];
  if (icr.shorthand == Shorthand::kAllIncludingSelf ||
      icr.shorthand == Shorthand::kAllExcludingSelf) {
    ++counters_.broadcast_ipi;
  }
  if (fixed && icr.shorthand == Shorthand::kSelf) {
    ++counters_.self_ipi;
    effect.kind = Kind::kSelfIpi;
    Accept(icr.vector);
  }
  return effect;
}

// 11.9: SVR. 11.4.7.2: while software-disabled, "the mask bits for all the LVT entries are set".
WriteEffect LocalApic::WriteSvr(uint32_t value, Time now) {
  const uint32_t before = svr_;
  if ((value & kSvrEnable) == 0) Advance(now);  // what expired before still counts
  svr_ = value & SvrWritable(config_);
  if (!software_enabled()) {
    for (uint32_t& lvt : lvt_) lvt |= kLvtMasked;
  }
  return WriteEffect::Of((before ^ svr_) & kSvrEnable ? Kind::kRouting : Kind::kNone);
}

WriteEffect LocalApic::WriteLvt(LvtEntry entry, uint32_t value, Time now) {
  if (entry == LvtEntry::kTimer) Advance(now);
  StoreLvt(entry, value);
  return WriteEffect::Of(entry == LvtEntry::kTimer ? Kind::kTimer : Kind::kNone);
}

void LocalApic::StoreLvt(LvtEntry entry, uint32_t value) {
  const uint32_t writable = LvtWritableHere(entry, config_);
  uint32_t& lvt = LvtRef(entry);
  lvt = (value & writable) | (lvt & ~writable & LvtReadOnly(entry));
  if ((lvt & kLvtLevelTriggered) == 0) lvt &= ~kLvtRemoteIrr;
  // "Attempts to reset these bits will be ignored."
  if (!software_enabled()) lvt |= kLvtMasked;
  if (entry == LvtEntry::kTimer) timer_.SetMode(LvtTimerMode(lvt));
}

uint64_t LocalApic::ReadTscDeadline(Time now) {
  Advance(now);
  return timer_.tsc_deadline();
}

ReadResult LocalApic::ReadTscDeadlineMsr(Time now) {
  if (!config_.has_tsc_deadline) return {true, 0};
  return {false, ReadTscDeadline(now)};
}

WriteEffect LocalApic::WriteTscDeadline(uint64_t value, Time now) {
  if (!config_.has_tsc_deadline) return WriteEffect::Fault();
  Advance(now);
  timer_.SetTscDeadline(value);
  Advance(now);  // a deadline in the past fires at once
  return WriteEffect::Of(Kind::kTimer);
}

// 11.4.8: version 14H, integrated APIC.
uint32_t LocalApic::VersionRegister() const {
  const uint32_t max_lvt_entry = config_.has_cmci ? 6 : 5;
  return max_lvt_entry << 16 | 0x14 | (config_.has_directed_eoi ? kVersionDirectedEoi : 0);
}

}  // namespace sipi::apic
