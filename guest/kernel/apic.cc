#include "guest/kernel/apic.h"

#include "guest/abi/layout.h"

namespace sipi {
namespace {

using apic::DeliveryMode;
using apic::Icr;
using apic::Shorthand;

void Send(PerCpu& self, const Icr& icr, uint16_t target) {
  platform::Trace(abi::TraceEvent::kIcrWrite, target, icr.Low());
  platform::ApicWriteIcr(icr.Low(), icr.dest);
  switch (icr.mode) {
    case DeliveryMode::kInit:
      if (icr.assert_level) self.slot->inits_sent++;
      break;
    case DeliveryMode::kStartUp:
      self.slot->startups_sent++;
      break;
    default:
      self.slot->ipis_sent++;
  }
}

void SendTo(PerCpu& self, CpuNumber target, DeliveryMode mode, uint8_t vector) {
  const Icr icr{Vector(vector),
                mode,
                Shorthand::kNone,
                false,
                true,
                false,
                self.kernel->entry(target).apic_id};
  Send(self, icr, static_cast<uint16_t>(target.value));
}

void SendAll(PerCpu& self, DeliveryMode mode, uint8_t vector) {
  const Icr icr{Vector(vector), mode, Shorthand::kAllExcludingSelf, false, true, false, 0};
  Send(self, icr, abi::kAllTargets);
}

// SDM vol 3A, 11.6.1: an INIT level de-assert has level 0 and trigger mode level.
constexpr Icr Deassert(Shorthand shorthand, uint32_t dest) {
  return Icr{Vector(0), DeliveryMode::kInit, shorthand, false, false, true, dest};
}

}  // namespace

void EnableLocalApic() {
  platform::ApicWrite(apic::Reg::kSvr, apic::kSvrEnable | abi::kSpuriousVector);
}

void SendInit(PerCpu& self, CpuNumber target) { SendTo(self, target, DeliveryMode::kInit, 0); }

void SendInitDeassert(PerCpu& self, CpuNumber target) {
  Send(self, Deassert(Shorthand::kNone, self.kernel->entry(target).apic_id),
       static_cast<uint16_t>(target.value));
}

void SendStartup(PerCpu& self, CpuNumber target, Vector vector) {
  SendTo(self, target, DeliveryMode::kStartUp, vector.value);
}

void SendInitAllButSelf(PerCpu& self) { SendAll(self, DeliveryMode::kInit, 0); }

void SendInitDeassertAllButSelf(PerCpu& self) {
  Send(self, Deassert(Shorthand::kAllExcludingSelf, 0), abi::kAllTargets);
}

void SendStartupAllButSelf(PerCpu& self, Vector vector) {
  SendAll(self, DeliveryMode::kStartUp, vector.value);
}

void SendIpi(PerCpu& self, CpuNumber target, Vector vector) {
  SendTo(self, target, DeliveryMode::kFixed, vector.value);
}

void SendIpiAllButSelf(PerCpu& self, Vector vector) {
  SendAll(self, DeliveryMode::kFixed, vector.value);
}

void SendQuietIpi(PerCpu& self, CpuNumber target, Vector vector) {
  const Icr icr{vector,
                DeliveryMode::kFixed,
                Shorthand::kNone,
                false,
                true,
                false,
                self.kernel->entry(target).apic_id};
  platform::ApicWriteIcr(icr.Low(), icr.dest);
  self.slot->ipis_sent++;
}

void ArmTimer(PerCpu& self, platform::Deadline deadline) {
  if (self.timer_armed_ticks != 0 && self.timer_armed_ticks <= deadline.ticks) return;
  self.timer_armed_ticks = deadline.ticks;
  if (self.kernel->tsc_deadline) {
    platform::ApicWrite(apic::Reg::kLvtTimer, apic::kLvtTimerTscDeadline | abi::kTimerVector);
    platform::WriteTscDeadline(deadline.ticks);
    return;
  }
  const uint64_t now = platform::NowTicks();
  const uint64_t left_us =
      deadline.ticks > now ? (deadline.ticks - now) * 1000 / self.kernel->result->boot_tsc_khz : 1;
  // Divide by 16, so that ten seconds of a 1 GHz bus fit 32 bits; a longer wait is armed again when
  // this one ends.
  uint64_t count = left_us * self.kernel->slot(kBootCpu).bus_khz / 16000 + 1;
  if (count > 0xffffffff) count = 0xffffffff;
  platform::ApicWrite(apic::Reg::kLvtTimer, apic::kLvtTimerOneShot | abi::kTimerVector);
  platform::ApicWrite(apic::Reg::kTimerDivide, 3);
  platform::ApicWrite(apic::Reg::kTimerInitial, static_cast<uint32_t>(count));
}

}  // namespace sipi
