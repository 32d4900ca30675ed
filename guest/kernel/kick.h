// The operations that sequence::KickSequence needs, for one CPU and for all but self.
#pragma once

#include "guest/kernel/apic.h"
#include "guest/kernel/calibrate.h"
#include "guest/sequence/driver.h"

namespace sipi {

struct AllButSelf {};

class KickOps {
 public:
  explicit KickOps(PerCpu& self) : self_(self) {}

  void Kick(CpuNumber target) { Kick(target, static_cast<uint16_t>(target.value)); }
  void KickAll() { Kick(AllButSelf{}, abi::kAllTargets); }

  // For a CPU that was kicked and has not been heard of: it may be on its way, and an INIT would
  // stop it wherever it is by then, at worst with the trampoline's lock or counted as online.
  void Remind(CpuNumber target) {
    const auto traced = static_cast<uint16_t>(target.value);
    platform::Trace(abi::TraceEvent::kKickBegin, traced, 0);
    sequence::StartupSequence(*this, self_.kernel->knobs().kick, target);
    platform::Trace(abi::TraceEvent::kKickEnd, traced, 0);
  }

  void SendInit(CpuNumber target) { sipi::SendInit(self_, target); }
  void SendInit(AllButSelf) { SendInitAllButSelf(self_); }
  void SendInitDeassert(CpuNumber target) { sipi::SendInitDeassert(self_, target); }
  void SendInitDeassert(AllButSelf) { SendInitDeassertAllButSelf(self_); }
  void SendStartup(CpuNumber target, uint32_t) { sipi::SendStartup(self_, target, kVector); }
  void SendStartup(AllButSelf, uint32_t) { SendStartupAllButSelf(self_, kVector); }
  void DelayUs(uint32_t us) {
    if (us != 0) platform::DelayUs(us);
  }

  // "+overlap": the first INIT wait of the boot CPU is spent calibrating.
  void InitDelay(uint32_t us) {
    if (self_.kernel->boot_calibrated) {
      DelayUs(us);
      return;
    }
    const uint64_t begin_ticks = platform::NowTicks();
    CalibrateBootCpu(self_);
    platform::DelayUntilUs(begin_ticks, us);
  }

 private:
  static constexpr Vector kVector{abi::kTrampolineVector};

  template <class Target>
  void Kick(Target target, uint16_t traced) {
    platform::Trace(abi::TraceEvent::kKickBegin, traced, 0);
    sequence::KickSequence(*this, self_.kernel->knobs().kick, target);
    platform::Trace(abi::TraceEvent::kKickEnd, traced, 0);
  }

  PerCpu& self_;
};

}  // namespace sipi
