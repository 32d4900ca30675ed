// A vCPU whose local APIC is KVM's (irqchips `split` and `kernel`): INIT, SIPI, interrupts and HLT
// never come to user space. An AP's thread just sits in KVM_RUN.
#pragma once

#include <atomic>
#include <string>

#include "vmm/vcpu/vcpu_thread.h"

namespace sipi {

// What a vCPU said when it was asked (CpuMailbox::kInspect).
struct VcpuInspection {
  uint32_t mp_state = 0;
  bool interrupts_enabled = false;
  bool interrupt_pending = false;  // something is in IRR
  bool timer_armed = false;
  uint64_t rip = 0;

  // Nothing but another CPU or a device can make it go on.
  bool Blocked() const;
};

class KernelVcpu final : public VcpuThread {
 public:
  using VcpuThread::VcpuThread;

  // The answer to the inspection `round` (from 1 up, ascending), or null if there is none yet. Any
  // thread.
  const VcpuInspection* InspectionOf(uint32_t round) const;
  // Asks. The monitor's thread; the next round only when the last is answered or given up.
  void AskInspection(uint32_t round);

 protected:
  Next Prepare() override;
  bool HandleChipExit() override;
  void OnAgain() override;
  std::string DoingNow() override;

 private:
  VcpuInspection Inspect();
  bool FaultIs(abi::Fault kind) const;
  bool NeverStarts() const;
  bool OfferExtInt();

  bool started_ = false;
  std::atomic<uint32_t> asked_round_{0};
  std::atomic<uint32_t> answered_round_{0};
  VcpuInspection inspection_;  // published by answered_round_
};

}  // namespace sipi
