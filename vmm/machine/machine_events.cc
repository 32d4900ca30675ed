// What vCPU threads tell the machine.
#include <algorithm>
#include <utility>

#include "vmm/base/errno_status.h"
#include "vmm/machine/machine.h"
#include "vmm/machine/signal_block.h"

namespace sipi {

void Machine::OnGuestExit(CpuNumber cpu, uint32_t value) {
  end_.Set({.kind = EndKind::kGuestExit, .cpu = cpu, .code = value, .text = {}, .error = {}});
}

void Machine::OnFault(CpuNumber cpu, std::string diagnosis) {
  end_.Set(
      {.kind = EndKind::kFault, .cpu = cpu, .code = 0, .text = std::move(diagnosis), .error = {}});
}

void Machine::OnDoorbell(CpuNumber /*cpu*/, abi::Doorbell bell) {
  switch (bell) {
    case abi::Doorbell::kBeforeKick:
      WaitUntilReachable();
      return;
    case abi::Doorbell::kReady:
      StartSequencer();
      return;
  }
}

void Machine::OnAllIdle() { CheckAllIdle(); }

void Machine::CheckAllIdle() {
  const bool idle = ledger_->AllIdle([this] {
    return std::any_of(mailboxes_.begin(), mailboxes_.end(),
                       [](const CpuMailbox& mailbox) { return mailbox.HasWork(); });
  });
  if (idle) end_.Set({.kind = EndKind::kAllHalted, .cpu = {}, .code = 0, .text = {}, .error = {}});
}

bool Machine::WaitUntilReachable() {
  // KVM drops an INIT or SIPI to a vCPU that does not exist; our mailboxes keep it.
  if (options_.irqchip == IrqchipKind::kUser) return true;
  if (!factory_->WaitDone()) return false;
  // KVM makes its map of APIC IDs anew when a local APIC changes, and a new vCPU's reset comes
  // before that vCPU is listed. The last ones are missing from the map until some APIC changes once
  // more (kvm_recalculate_apic_map; KVM API, 4.58 KVM_SET_LAPIC), so the boot CPU's is set to what
  // it is.
  Vcpu& boot = threads_[0]->vcpu();
  absl::StatusOr<kvm_lapic_state> lapic = boot.GetLapic();
  const absl::Status status = lapic.ok() ? boot.SetLapic(*lapic) : lapic.status();
  if (status.ok()) return true;
  end_.Set({.kind = EndKind::kHostError, .cpu = {}, .code = 0, .text = {}, .error = status});
  return false;
}

void Machine::StartSequencer() {
  const std::lock_guard lock(sequencer_mutex_);
  if (sequencer_ == nullptr || sequencer_started_ || stopping_) return;
  if (!WaitUntilReachable()) return;
  const SignalBlock block;
  if (ledger_ != nullptr) ledger_->Leave();
  sequencer_active_.store(true, std::memory_order_release);
  const int error = pthread_create(&sequencer_thread_, nullptr, &Machine::SequencerMain, this);
  sequencer_started_ = error == 0;
  if (error != 0) {
    end_.Set({.kind = EndKind::kHostError,
              .cpu = {},
              .code = 0,
              .text = {},
              .error = ErrnoStatus(error, "pthread_create for the host's sequencer",
                                   "raise the limit of threads (ulimit -u, pids.max)")});
  }
}

void* Machine::SequencerMain(void* self) {
  pthread_setname_np(pthread_self(), "sequencer");
  Machine& machine = *static_cast<Machine*>(self);
  machine.sequencer_log_.Emit(abi::TraceEvent::kReady);
  const absl::Status status = machine.sequencer_->Run();
  machine.sequencer_active_.store(false, std::memory_order_release);
  if (!status.ok()) {
    machine.end_.Set({.kind = EndKind::kFault,
                      .cpu = {},
                      .code = 0,
                      .text = std::string(status.message()),
                      .error = {}});
  }
  // From here on this thread wakes nobody.
  if (machine.ledger_ != nullptr && machine.ledger_->Enter()) machine.CheckAllIdle();
  return nullptr;
}

}  // namespace sipi
