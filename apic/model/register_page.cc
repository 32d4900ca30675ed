// The local APIC to and from the register page of register_page.h: the offsets of table 11-1 (SDM
// vol 3A, 11.4.1), and what of a restored page is believed: bits that exist (11.5.1, 11.5.3,
// 11.8.4).
#include "apic/model/register_page.h"

#include "apic/model/local_apic.h"
#include "apic/model/register_map.h"
#include "apic/regs/destination.h"
#include "apic/regs/error_status.h"

namespace sipi::apic {
namespace {

uint32_t BitmapOffset(Reg first, size_t index) {
  return static_cast<uint32_t>(first) + static_cast<uint32_t>(index) * 16;
}

}  // namespace

RegisterPage LocalApic::ToPage(Time now) {
  Advance(now);
  RegisterPage page;
  for (const Reg reg :
       {Reg::kId, Reg::kVersion, Reg::kTpr, Reg::kPpr, Reg::kLdr, Reg::kDfr, Reg::kSvr, Reg::kEsr,
        Reg::kIcrLow, Reg::kTimerInitial, Reg::kTimerCurrent, Reg::kTimerDivide}) {
    page.Set(reg, ReadRegister(reg, now));
  }
  page.Set(Reg::kIcrHigh, mode() == ApicMode::kX2Apic ? icr_dest_ : icr_dest_ << 24);
  for (size_t i = 0; i < kLvtEntryCount; ++i) {
    const LvtEntry entry = static_cast<LvtEntry>(i);
    if (entry != LvtEntry::kCmci || config_.has_cmci) page.Set(LvtReg(entry), lvt(entry));
  }
  for (size_t i = 0; i < 8; ++i) {
    page.Set(BitmapOffset(Reg::kIsr0, i), isr_.Register(i));
    page.Set(BitmapOffset(Reg::kTmr0, i), tmr_.Register(i));
    page.Set(BitmapOffset(Reg::kIrr0, i), irr_.Register(i));
  }
  return page;
}

void LocalApic::FromPage(const RegisterPage& page, Time now) {
  ResetRegisters();
  tpr_ = static_cast<uint8_t>(page.Get(Reg::kTpr));
  ldr_ = page.Get(Reg::kLdr) & kLdrXApicMask;
  dfr_ = page.Get(Reg::kDfr) | kDfrFixedOnes;
  svr_ = page.Get(Reg::kSvr) & SvrWritable(config_);
  esr_ = page.Get(Reg::kEsr) & kEsrDefined;
  icr_low_ = page.Get(Reg::kIcrLow) & kIcrLowWritable;
  const uint32_t high = page.Get(Reg::kIcrHigh);
  icr_dest_ = mode() == ApicMode::kX2Apic ? high : high >> 24;
  for (size_t i = 0; i < kLvtEntryCount; ++i) {
    const LvtEntry entry = static_cast<LvtEntry>(i);
    if (entry == LvtEntry::kCmci && !config_.has_cmci) continue;
    const uint32_t value = page.Get(LvtReg(entry));
    LvtRef(entry) = value & LvtReadOnly(entry) & kLvtRemoteIrr;  // delivery is over: status idle
    StoreLvt(entry, value);
  }
  lint0_level_vector_ = LvtVector(lvt(LvtEntry::kLint0));  // the page has no better
  for (size_t i = 0; i < 8; ++i) {
    isr_.SetRegister(i, page.Get(BitmapOffset(Reg::kIsr0, i)));
    tmr_.SetRegister(i, page.Get(BitmapOffset(Reg::kTmr0, i)));
    irr_.SetRegister(i, page.Get(BitmapOffset(Reg::kIrr0, i)));
  }
  // "The local APIC will never set an IRR bit in the range 0 to 15."
  irr_.SetRegister(0, irr_.Register(0) & 0xffff0000);
  isr_.SetRegister(0, isr_.Register(0) & 0xffff0000);
  tmr_.SetRegister(0, tmr_.Register(0) & 0xffff0000);
  timer_.SetDivide(page.Get(Reg::kTimerDivide), now);
  timer_.Restore(page.Get(Reg::kTimerInitial), page.Get(Reg::kTimerCurrent), now);
}

}  // namespace sipi::apic
