// How the host sends INIT, SIPI and interrupts to a CPU, past any guest code.
#pragma once

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "apic/regs/types.h"
#include "vmm/irqchip/user_irqchip.h"
#include "vmm/kvm/vm.h"

namespace sipi {

// Used by one thread at a time.
class StartupSender {
 public:
  virtual ~StartupSender() = default;
  virtual absl::Status SendInit(CpuNumber target) = 0;
  virtual absl::Status SendStartup(CpuNumber target, Vector vector) = 0;
  virtual absl::Status SendInterrupt(CpuNumber target, Vector vector) = 0;
};

// irqchip `user`: through the mailboxes.
class MailboxSender final : public StartupSender {
 public:
  explicit MailboxSender(UserIrqchip& chip) : chip_(chip) {}
  absl::Status SendInit(CpuNumber target) override;
  absl::Status SendStartup(CpuNumber target, Vector vector) override;
  absl::Status SendInterrupt(CpuNumber target, Vector vector) override;
  const SendCounters& counters() const { return counters_; }

 private:
  UserIrqchip& chip_;
  SendCounters counters_;
};

// irqchips `split` and `kernel`: KVM_SIGNAL_MSI, one per message and target. An MSI has no
// shorthand (SDM vol 3A, 11.11.1), and the broadcast ID would reset the boot CPU too.
class MsiSender final : public StartupSender {
 public:
  // `ids[i]` is the APIC ID of CPU i.
  MsiSender(Vm& vm, std::vector<ApicId> ids) : vm_(vm), ids_(std::move(ids)) {}
  absl::Status SendInit(CpuNumber target) override;
  absl::Status SendStartup(CpuNumber target, Vector vector) override;
  absl::Status SendInterrupt(CpuNumber target, Vector vector) override;

 private:
  absl::Status Send(CpuNumber target, apic::DeliveryMode mode, Vector vector);

  Vm& vm_;
  const std::vector<ApicId> ids_;
};

}  // namespace sipi
