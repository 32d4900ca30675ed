#include "tests/apic_kvm/access_generator.h"

#include <array>

#include "apic/regs/apic_base.h"
#include "apic/regs/destination.h"
#include "apic/regs/icr.h"
#include "apic/regs/lvt.h"

namespace sipi {
namespace {

using apic::Reg;

constexpr uint32_t kNobody = 0x77;  // an APIC ID that no CPU has
constexpr uint64_t kOtherPage = 0xfed10000;
constexpr uint32_t kLongCount = 0xc0000000;  // with a bus clock of 1 GHz 3.2 s at least

// The registers that mean something, often used ones more than once.
constexpr std::array kRegisters = {
    Reg::kId,      Reg::kVersion,  Reg::kTpr,          Reg::kTpr,          Reg::kApr,
    Reg::kPpr,     Reg::kEoi,      Reg::kEoi,          Reg::kEoi,          Reg::kRrd,
    Reg::kLdr,     Reg::kDfr,      Reg::kSvr,          Reg::kSvr,          Reg::kIsr0,
    Reg::kTmr0,    Reg::kIrr0,     Reg::kEsr,          Reg::kLvtCmci,      Reg::kIcrLow,
    Reg::kIcrLow,  Reg::kIcrLow,   Reg::kIcrHigh,      Reg::kLvtTimer,     Reg::kLvtTimer,
    Reg::kLvtPerf, Reg::kLvtLint0, Reg::kLvtLint1,     Reg::kLvtError,     Reg::kLvtThermal,
    Reg::kSelfIpi, Reg::kSelfIpi,  Reg::kTimerInitial, Reg::kTimerCurrent, Reg::kTimerDivide,
};

Operation WriteMsr(uint32_t msr, uint64_t value) {
  return {.code = OpCode::kWrmsr,
          .address = msr,
          .low = static_cast<uint32_t>(value),
          .high = static_cast<uint32_t>(value >> 32)};
}

Operation ReadMsr(uint32_t msr) { return {.code = OpCode::kRdmsr, .address = msr}; }

}  // namespace

Operation AccessGenerator::Next(const apic::LocalApic& apic) {
  if (apic.HighestDeliverable() && OneIn(4)) return {.code = OpCode::kHalt};
  if (OneIn(40) || (apic.mode() == apic::ApicMode::kDisabled && OneIn(3))) return ApicBase(apic);
  if (OneIn(40)) return OneIn(2) ? TscDeadline() : ReadMsr(apic::kMsrTscDeadline);
  const bool x2apic = apic.mode() == apic::ApicMode::kX2Apic;
  if (OneIn(30) ? !x2apic : x2apic) return X2Apic();  // now and then by the other way
  return XApic(apic);
}

Operation AccessGenerator::ApicBase(const apic::LocalApic& apic) {
  if (OneIn(3)) return ReadMsr(apic::kMsrApicBase);
  const bool moves = OneIn(8);
  uint64_t value = moves ? kOtherPage : apic::kApicBaseGpa;
  if (!OneIn(10)) value |= apic::kApicBaseBsp;
  if (!OneIn(4)) value |= apic::kApicBaseEnable;
  if (OneIn(2)) value |= apic::kApicBaseX2Apic;
  if (OneIn(6)) value |= uint64_t{1} << Below(64);
  // Most of what is so made would be illegal: prefer the way on.
  if (OneIn(2) && apic.mode() == apic::ApicMode::kDisabled) {
    value = apic::kApicBaseGpa | apic::kApicBaseBsp | apic::kApicBaseEnable;
  }
  return WriteMsr(apic::kMsrApicBase, value);
}

Operation AccessGenerator::TscDeadline() {
  const uint64_t years = uint64_t{1} << 60;
  return WriteMsr(apic::kMsrTscDeadline, OneIn(3) ? 0 : years + Draw());
}

Operation AccessGenerator::XApic(const apic::LocalApic& apic) {
  uint64_t page = apic::ApicBaseAddress(apic.ReadApicBase());
  if (OneIn(50)) page = page == kOtherPage ? apic::kApicBaseGpa : kOtherPage;
  uint32_t offset = RegisterOffset();
  const uint32_t address = static_cast<uint32_t>(page) + offset;
  if (OneIn(3)) return {.code = OpCode::kMmioRead, .address = address};
  Operation write = {.code = OpCode::kMmioWrite,
                     .address = address,
                     .low = static_cast<uint32_t>(ValueFor(offset))};
  apic::LocalApic copy = apic;
  const auto now = [&](Reg reg) { return copy.ReadMmio(static_cast<uint32_t>(reg), {}); };
  if (offset == static_cast<uint32_t>(Reg::kIcrHigh)) {
    write.low = Rubbish();
    if (OneIn(2)) write.low = OneIn(2) ? kNobody << 24 : 0;
    if (OneIn(4)) write.low = now(Reg::kId);  // which may have been written
  }
  if (offset == static_cast<uint32_t>(Reg::kIcrLow)) {
    const uint32_t dest = now(Reg::kIcrHigh);
    write.low = IcrLow(dest == kNobody << 24 && now(Reg::kId) != dest);
  }
  return write;
}

Operation AccessGenerator::X2Apic() {
  const uint32_t offset = RegisterOffset() & ~uint32_t{15};
  const uint32_t msr = apic::kX2ApicMsrFirst + offset / 16;
  if (OneIn(3)) return ReadMsr(msr);
  if (offset == static_cast<uint32_t>(Reg::kIcrLow)) {
    uint64_t dest = OneIn(2) ? kNobody : OneIn(2) ? 0 : Rubbish();
    if (OneIn(8)) dest = apic::kX2ApicBroadcast;
    return WriteMsr(msr, dest << 32 | IcrLow(dest == kNobody));
  }
  uint64_t value = ValueFor(offset);
  if (OneIn(10)) value |= uint64_t{1} << Below(64);
  if (OneIn(200)) value |= uint64_t{Draw()} << 32;
  const bool count = offset == static_cast<uint32_t>(Reg::kTimerInitial);
  if (count && (value & 0xffffffff) != 0) value |= kLongCount;
  return WriteMsr(msr, value);
}

uint32_t AccessGenerator::RegisterOffset() {
  if (OneIn(12)) return Below(256) * 16;             // any
  if (OneIn(60)) return Below(1024) & ~uint32_t{3};  // between registers, too
  const uint32_t offset = static_cast<uint32_t>(kRegisters[Below(kRegisters.size())]);
  const bool bitmap = offset >= 0x100 && offset < 0x280;
  return bitmap ? offset + Below(8) * 16 : offset;
}

uint64_t AccessGenerator::ValueFor(uint32_t offset) {
  const Reg reg = static_cast<Reg>(offset);
  const bool rubbish = OneIn(8);
  switch (reg) {
    case Reg::kTimerInitial:
      return OneIn(4) ? 0 : kLongCount | Draw();
    case Reg::kSvr:
      return (rubbish ? Rubbish() : Below(0x400)) | (OneIn(5) ? 0 : apic::kSvrEnable);
    case Reg::kEoi:
    case Reg::kEsr:
      return rubbish ? Rubbish() : 0;
    case Reg::kDfr:
      return rubbish ? Rubbish() : OneIn(2) ? apic::kDfrFlat : apic::kDfrCluster;
    case Reg::kTpr:
    case Reg::kSelfIpi:
      return rubbish ? Rubbish() : Below(256);
    case Reg::kTimerDivide:
      return rubbish ? Rubbish() : Below(16) & 0xb;
    case Reg::kLvtTimer:
      return Draw() & (rubbish ? ~0u : apic::LvtWritable(apic::LvtEntry::kTimer));
    case Reg::kLvtLint0:
    case Reg::kLvtLint1:
      return Draw() & (rubbish ? ~0u : apic::LvtWritable(apic::LvtEntry::kLint0));
    case Reg::kLvtError:
      return Draw() & (rubbish ? ~0u : apic::LvtWritable(apic::LvtEntry::kError));
    case Reg::kLvtThermal:
    case Reg::kLvtPerf:
    case Reg::kLvtCmci:
      return Draw() & (rubbish ? ~0u : apic::LvtWritable(apic::LvtEntry::kPerf));
    default:
      return OneIn(2) ? 0 : Rubbish();
  }
}

// A word with few bits set, many, or any.
uint32_t AccessGenerator::Rubbish() {
  if (OneIn(3)) return 1u << Below(32);
  if (OneIn(3)) return Draw() & Draw();
  return Draw();
}

uint32_t AccessGenerator::IcrLow(bool harmless_dest) {
  apic::Icr icr;
  icr.vector = Vector(static_cast<uint8_t>(Below(256)));
  icr.mode = OneIn(3) ? apic::DeliveryMode::kLowestPriority : apic::DeliveryMode::kFixed;
  icr.shorthand = static_cast<apic::Shorthand>(Below(4));
  icr.logical = OneIn(3);
  icr.level_triggered = OneIn(4);
  icr.assert_level = !OneIn(4);
  if (OneIn(3)) {
    icr.mode = static_cast<apic::DeliveryMode>(2 + Below(6));
    icr.logical = false;
    icr.shorthand =
        harmless_dest && OneIn(2) ? apic::Shorthand::kNone : apic::Shorthand::kAllExcludingSelf;
  }
  const uint32_t reserved = OneIn(10) ? 1u << Below(32) & 0xfff32000 : 0;
  return icr.Low() | reserved;
}

}  // namespace sipi
