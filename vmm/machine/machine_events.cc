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
      // KVM drops an INIT or SIPI to a vCPU that does not exist; our mailboxes keep it.
      if (options_.irqchip != IrqchipKind::kUser) factory_->WaitDone();
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

void Machine::StartSequencer() {
  const std::lock_guard lock(sequencer_mutex_);
  if (sequencer_ == nullptr || sequencer_started_ || stopping_) return;
  // In KVM's irqchips a message to a vCPU that does not exist is lost.
  if (options_.irqchip != IrqchipKind::kUser && !factory_->WaitDone()) return;
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
