// A vCPU whose local APIC is the model's (irqchip `user`): the target's side of INIT, SIPI, IPIs
// and timers, and the injection of interrupts.
//
// States of the CPU, as this thread sees them:
//
//   waiting for SIPI --SIPI--> running --HLT--> halted
//        ^                        |  ^             |  interrupt, NMI
//        +---------INIT-----------+--+-------------+
//
// A CPU that waits or is halted sleeps on its mailbox, outside of KVM.
//
// Source: SDM vol 3A, 9.4 and table 10-1 (INIT, SIPI), 6.7.1 and 6.9 (NMI), 11.5.1 (LINT0), 11.8
// (interrupts and priorities), 11.5.4.1 (deadlines); vol 3C, 27.7.2 (what wait-for-SIPI blocks).
// Where it leaves a choice:
// - An NMI for a CPU that waits for a SIPI is held, and delivered before the first instruction that
//   the SIPI starts. An INIT ends those that were sent before it.
// Not modelled:
// - SMI: there is no system management mode, and it is counted as undeliverable.
// - Signals at LINT1, and the thermal, CMCI and performance sources: nothing here raises them.
// - MOV CR8 does not exit. Only a changed class is seen, so MOV CR8 with the class that TPR has
//   leaves TPR[3:0], which 11.8.6 clears.
// - The xAPIC page over RAM: KVM reads and writes the RAM, the page shows only where none is.
// - A change of the TSC under an armed deadline. What a guest write to IA32_TSC (_ADJUST) makes of
//   the offset is seen when a deadline is written and when one is due: a TSC that is set back
//   postpones an armed deadline, one that is set forward leaves it late.
// - TSC scaling: guests run at the host's rate.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "apic/model/cpu_reset.h"
#include "apic/model/local_apic.h"
#include "vmm/vcpu/kick_timer.h"
#include "vmm/vcpu/vcpu_thread.h"

namespace sipi {

class UserVcpu final : public VcpuThread {
 public:
  UserVcpu(const VcpuWorld& world, CpuNumber cpu, ApicId apic_id, CpuMailbox& mailbox,
           size_t log_records);

  const apic::LocalApic& apic() const { return apic_; }
  void HandOver() override;

 protected:
  Next Prepare() override;
  bool HandleChipExit() override;
  void AfterRun() override;
  std::string DoingNow() override;

 private:
  // Interrupts on their way, as long as the profile's IPI latency is.
  struct InFlight {
    uint64_t due_ns;
    CpuMailbox::VectorWords vectors;
    CpuMailbox::VectorWords levels;
  };

  // What was posted (user_vcpu.cc).
  bool TakeWork(uint32_t work);
  void TakeStartup();
  void TakeInit();
  bool Restart(const apic::CpuResetState& state);
  void Start(Vector vector);
  void TakeVectors();
  void AcceptVectors(const CpuMailbox::VectorWords& vectors, const CpuMailbox::VectorWords& levels);
  // The 8259's INT, at LINT0: has it risen, or is it high and LINT0 level-triggered?
  void RaiseLint0();
  void SampleLint0();

  // What is due (user_vcpu.cc).
  apic::Time Now() const;
  void AcceptDue();
  std::optional<uint64_t> NextDeadlineNs() const;
  void RefreshTscOffset();
  // Has the thread kicked when something is due. False: it cannot be, and the CPU has faulted.
  bool ArmKick();
  void Block(std::optional<uint64_t> deadline_ns);
  absl::StatusOr<bool> HltEndsAtOnce();
  bool WakesFromHalt();
  bool NmisAreBlocked();
  // The 8259 wants to interrupt this CPU, directly or by way of LINT0.
  bool ExtIntDue() const;
  bool InterruptDue() const;
  bool Inject();
  absl::Status InjectNmis();
  absl::Status InjectInterrupt();

  // Exits (user_vcpu_exits.cc).
  void HandleMmio();
  void HandleRdmsr();
  void HandleWrmsr();
  void Apply(const apic::WriteEffect& effect);
  // Before an access that shows, or decides, what has arrived.
  void TakeArrived(uint32_t offset, bool is_write);
  void Publish();
  void PublishReachability();
  void RefreshTimer();

  apic::LocalApic apic_;
  bool waiting_;  // for a SIPI
  bool halted_ = false;
  uint32_t nmis_pending_ = 0;
  bool nmis_in_kvm_ = false;      // given to KVM, perhaps not delivered yet
  bool nmi_held_in_kvm_ = false;  // likewise, or held there until an NMI's handler has ended
  bool ext_int_pending_ = false;  // by a message; that of LINT0 is the 8259's INT itself
  bool has_run_ = false;          // since power-up: INIT must reset the whole state in KVM
  bool was_late_ = false;         // the fault that makes its first start late has struck
  bool first_run_ = true;         // the next entry is the first after power-up or a SIPI
  uint64_t cr0_at_init_ = apic::StateAfterPowerOn(0).cr0;
  int64_t tsc_offset_;  // guest TSC - host TSC, see RefreshTscOffset
  std::optional<uint64_t> timer_deadline_ns_;
  std::deque<InFlight> in_flight_;
  KickTimer kick_timer_;
};

}  // namespace sipi
