// The local APIC apart from its registers (register_access.cc): reset, IA32_APIC_BASE, acceptance
// and priority of interrupts, local sources, errors.
//
// Source: SDM vol 3A, 11.4.3, 11.4.4, 11.4.7, 11.5.1, 11.5.3, 11.5.5, 11.8, 11.9, 11.12.5; what it
// leaves out is at the head of local_apic.h.
#include "apic/model/local_apic.h"

#include <algorithm>

#include "apic/regs/destination.h"
#include "apic/regs/error_status.h"

namespace sipi::apic {

LocalApic::LocalApic(ApicId id, bool bsp, const ApicConfig& config)
    : id_(id), config_(config), timer_(config.bus_hz, config.tsc_hz) {
  Reset(bsp);
}

void LocalApic::Reset(bool bsp, ApicMode mode) {
  apic_base_ = kApicBaseGpa | (bsp ? kApicBaseBsp : 0);
  if (mode != ApicMode::kDisabled) apic_base_ |= kApicBaseEnable;
  if (mode == ApicMode::kX2Apic) apic_base_ |= kApicBaseX2Apic;
  written_id_.reset();
  ResetRegisters();
}

void LocalApic::Init() {
  ResetRegisters();
  ++counters_.inits;
}

// 11.4.7.1: all zero except for the LVT's masks, DFR and SVR.
void LocalApic::ResetRegisters() {
  svr_ = kSvrReset;
  icr_low_ = 0;
  icr_dest_ = 0;
  ldr_ = 0;
  dfr_ = kDfrFlat;
  esr_ = 0;
  pending_errors_ = 0;
  error_armed_ = true;
  tpr_ = 0;
  lvt_.fill(kLvtMasked);
  irr_.ClearAll();
  isr_.ClearAll();
  tmr_.ClearAll();
  timer_.Reset();
}

WriteEffect LocalApic::WriteApicBase(uint64_t value) {
  const uint64_t reserved = ApicBaseReserved(config_.phys_addr_bits, config_.has_x2apic);
  if (!ApicBaseWriteIsLegal(apic_base_, value, reserved)) return WriteEffect::Fault();
  return ApplyApicBase(value);
}

WriteEffect LocalApic::ApplyApicBase(uint64_t value) {
  if (value == apic_base_) return {};
  const ApicMode before = mode();
  apic_base_ = value;
  if (mode() == ApicMode::kDisabled) {
    written_id_.reset();
    ResetRegisters();
  }
  // 11.12.5.1: what only x2APIC mode has, such as the wide destination, starts out undefined.
  if (before != mode()) icr_dest_ = 0;
  return WriteEffect::Of(WriteEffect::Kind::kModeChange);
}

WriteEffect LocalApic::AdoptApicBase(uint64_t value) {
  if (!ApicBaseWriteIsLegal(apic_base_, value, 0)) {
    apic_base_ &= ~(kApicBaseEnable | kApicBaseX2Apic);
    written_id_.reset();
    ResetRegisters();
    if (ApicModeOf(value) == ApicMode::kX2Apic) apic_base_ |= kApicBaseEnable;
  }
  return ApplyApicBase(value);
}

// 11.8.3.1: the class is the higher of TPR's and that of the highest vector in service; the
// sub-class is TPR's if TPR's class is not lower, else 0.
uint8_t LocalApic::Ppr() const {
  const std::optional<Vector> in_service = isr_.Highest();
  const uint8_t isr_class = in_service ? in_service->value & 0xf0 : 0;
  return (tpr_ & 0xf0) >= isr_class ? tpr_ : isr_class;
}

uint32_t LocalApic::Ldr() const {
  return mode() == ApicMode::kX2Apic ? X2ApicLogicalId(id_) : ldr_;
}

RoutingState LocalApic::Routing() const {
  RoutingState state;
  state.mode = mode();
  state.software_enabled = software_enabled() && state.mode != ApicMode::kDisabled;
  state.priority = tpr_;
  state.dfr_model = static_cast<uint8_t>(dfr_ >> 28);
  state.has_written_id = mode() == ApicMode::kXApic && written_id_.has_value();
  if (state.has_written_id) state.written_id = *written_id_;
  state.ldr = Ldr();
  return state;
}

// 11.8.4 "Interrupt Acceptance for Fixed Interrupts"; 11.4.7.2 for the software-disabled APIC.
bool LocalApic::Accept(Vector vector, bool level) {
  if (mode() == ApicMode::kDisabled || !software_enabled()) {
    ++counters_.refused;
    return false;
  }
  if (IsIllegalVector(vector)) {
    ++counters_.refused;
    LogError(kEsrReceiveIllegalVector);
    return false;
  }
  // "Upon acceptance of an interrupt into the IRR, the corresponding TMR bit is cleared for
  // edge-triggered interrupts and set for level-triggered interrupts."
  tmr_.Assign(vector, level);
  if (irr_.Test(vector)) {
    ++counters_.merged;
    return false;
  }
  irr_.Set(vector);
  ++counters_.accepted;
  return true;
}

// 11.8.3.1: "The processor services only those interrupts that have a priority class higher than
// that specified in the PPR".
std::optional<Vector> LocalApic::HighestDeliverable() const {
  if (mode() == ApicMode::kDisabled) return std::nullopt;
  const std::optional<Vector> highest = irr_.Highest();
  if (!highest || (highest->value & 0xf0) <= (Ppr() & 0xf0)) return std::nullopt;
  return highest;
}

void LocalApic::Acknowledge(Vector vector) {
  irr_.Clear(vector);
  isr_.Set(vector);
  ++counters_.acknowledged;
}

// 11.9: "Dispensing the spurious-interrupt vector does not affect the ISR".
Vector LocalApic::TakeInterrupt() {
  if (const std::optional<Vector> vector = HighestDeliverable()) {
    Acknowledge(*vector);
    return *vector;
  }
  ++counters_.spurious;
  return spurious_vector();
}

// 11.8.5 "Signaling Interrupt Servicing Completion". With SVR bit 12 set, software tells the I/O
// APIC itself, and no broadcast goes out.
WriteEffect LocalApic::EndOfInterrupt() {
  const std::optional<Vector> vector = isr_.Highest();
  if (!vector) return {};
  isr_.Clear(*vector);
  // 11.5.1: remote IRR "is reset when an EOI command is received" for the interrupt that set it,
  // whatever vector the entry has by now. LINT1 never sets it.
  if (lint0_level_vector_ == *vector) LvtRef(LvtEntry::kLint0) &= ~kLvtRemoteIrr;
  ++counters_.eoi;
  WriteEffect effect = WriteEffect::Of(WriteEffect::Kind::kEoi);
  effect.eoi_vector = *vector;
  effect.eoi_level = tmr_.Test(*vector) && (svr_ & kSvrSuppressEoi) == 0;
  return effect;
}

// 11.4.3: as on a processor without an APIC. Its two pins are INTR and NMI (6.3.1 "External
// Interrupts").
LocalDelivery LocalApic::RaisePinOfDisabled(LvtEntry entry) {
  if (entry == LvtEntry::kLint0) return LocalDelivery::kExtInt;
  return entry == LvtEntry::kLint1 ? LocalDelivery::kNmi : LocalDelivery::kNone;
}

// 11.5.1 and 11.5.5 "Local Interrupt Acceptance".
LocalDelivery LocalApic::RaiseLocal(LvtEntry entry) {
  if (mode() == ApicMode::kDisabled) return RaisePinOfDisabled(entry);
  uint32_t& lvt = LvtRef(entry);
  if ((lvt & kLvtMasked) != 0) return LocalDelivery::kNone;
  const uint32_t before = lvt;
  // "When the local APIC handles a performance-monitoring counters interrupt, it automatically sets
  // the mask flag in the LVT performance counter register."
  if (entry == LvtEntry::kPerf) lvt |= kLvtMasked;
  const bool pin = entry == LvtEntry::kLint0 || entry == LvtEntry::kLint1;
  switch (LvtDeliveryMode(before)) {
    case DeliveryMode::kFixed: {
      // The trigger mode counts for fixed delivery only, and LINT1 is always edge-triggered.
      const bool level = entry == LvtEntry::kLint0 && (before & kLvtLevelTriggered) != 0;
      if (level && (before & kLvtRemoteIrr) != 0) return LocalDelivery::kNone;
      if (!Accept(LvtVector(before), level)) return LocalDelivery::kNone;
      if (level) {
        lvt |= kLvtRemoteIrr;
        lint0_level_vector_ = LvtVector(before);
      }
      return LocalDelivery::kFixed;
    }
    case DeliveryMode::kSmi:
      return LocalDelivery::kSmi;
    case DeliveryMode::kNmi:
      return LocalDelivery::kNmi;
    case DeliveryMode::kInit:  // "not supported for the CMCI, thermal and performance entries"
      return pin ? LocalDelivery::kInit : LocalDelivery::kNone;
    case DeliveryMode::kExtInt:
      return pin ? LocalDelivery::kExtInt : LocalDelivery::kNone;
    default:  // "all other combinations are reserved"
      return LocalDelivery::kNone;
  }
}

// 11.5.3: errors are collected whether masked or not; the interrupt comes once until ESR is
// written. An illegal vector in the error entry itself thus cannot recurse.
void LocalApic::LogError(uint32_t esr_bit) {
  pending_errors_ |= esr_bit;
  if (!error_armed_ || (lvt(LvtEntry::kError) & kLvtMasked) != 0) return;
  error_armed_ = false;
  RaiseLocal(LvtEntry::kError);
}

bool LocalApic::Advance(Time now) {
  const uint64_t expiries = timer_.Advance(now);
  if (expiries == 0) return false;
  counters_.timer_expired += expiries;
  return RaiseLocal(LvtEntry::kTimer) == LocalDelivery::kFixed;
}

std::optional<uint64_t> LocalApic::NextDeadlineNs(Time now) const {
  if ((lvt(LvtEntry::kTimer) & kLvtMasked) != 0) return std::nullopt;
  return timer_.NextExpiryNs(now);
}

}  // namespace sipi::apic
