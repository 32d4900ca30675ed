// What the two bring-ups at boot, with threads (hotplug/bringup.cc) and without (smpboot.cc), do
// alike of what sequence::RunStrategy asks for. How each waits for another CPU, and what it undoes,
// is its own.
#pragma once

#include "guest/kernel/handshake.h"
#include "guest/kernel/kick.h"
#include "guest/kernel/smpboot.h"
#include "guest/kernel/tree.h"
#include "guest/sequence/driver.h"

namespace sipi {

// A CPU that was waited for in vain. Control CPU.
inline void TraceTimeout(Kernel& kernel, CpuNumber cpu) {
  platform::Trace(abi::TraceEvent::kTimeout, static_cast<uint16_t>(cpu.value),
                  static_cast<uint32_t>(SyncStateOf(kernel, cpu)));
}

// And what that is to be called: of one that was kicked nobody has heard yet.
inline Error LateBecause(Kernel& kernel, CpuNumber cpu) {
  return SyncStateOf(kernel, cpu) == abi::SyncState::kKicked ? Error::kTimeoutAlive
                                                             : Error::kTimeoutOnline;
}

// A try ended with `error` since the AP, late from the one before, was on its way to park when it
// began, and has parked since. The next one sends it an INIT, which is all that helps.
inline bool ParkedMeanwhile(Kernel& kernel, CpuNumber cpu, Error error) {
  return error == Error::kCancelled && SyncStateOf(kernel, cpu) == abi::SyncState::kDead;
}

// On the boot CPU.
class BootPasses {
 public:
  // `own`: APs run on their own, once kicked.
  BootPasses(PerCpu& self, bool own) : self_(self), kernel_(*self.kernel), own_(own) {
    if (own_) kernel_.remaining.Store(kernel_.params->order_count, std::memory_order_seq_cst);
  }

  void PassBegin(uint32_t index) {
    kernel_.kick_means = kernel_.strategy.passes[index].means;
    platform::Trace(abi::TraceEvent::kPassBegin, 0, index);
  }
  void PassEnd(uint32_t index) { platform::Trace(abi::TraceEvent::kPassEnd, 0, index); }

  // A CPU that has failed in one pass is left alone in those that follow.
  bool InScope(CpuNumber cpu, sequence::Scope scope) const {
    if (kernel_.slot(cpu).error != 0) return false;
    if (scope == sequence::Scope::kAll) return true;
    return (kernel_.entry(cpu).thread == 0) == (scope == sequence::Scope::kPrimaries);
  }

  void KickBroadcast() {
    RingBeforeKick(kernel_);
    KickOps(self_).KickAll();
  }
  void KickTreeRoots(uint32_t) {
    RingBeforeKick(kernel_);
    KickTreeChildren(self_);
  }

 protected:
  // It could not be kicked: nobody waits for it.
  void CountOut() { kernel_.remaining.FetchAdd(~0u, std::memory_order_seq_cst); }

  // Until no kicked CPU is missing; false: some are, and no more come. wait(number) waits for fewer
  // to be missing than that number, with the bound of one handshake, begun anew with each arrival.
  template <class Wait>
  bool AwaitArrivals(Wait wait) {
    uint32_t before = kernel_.remaining.Load(std::memory_order_seq_cst);
    while (before != 0) {
      if (!wait(before)) {
        if (!kernel_.tree || rekicked_) return false;
        rekicked_ = true;
        KickTreeOrphans(self_);
      }
      before = kernel_.remaining.Load(std::memory_order_seq_cst);
    }
    return true;
  }

  PerCpu& self_;
  Kernel& kernel_;
  const bool own_;

 private:
  bool rekicked_ = false;
};

}  // namespace sipi
