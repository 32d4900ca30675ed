// KVM's own local APIC, driven by a guest: the reference of the differential test.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apic/model/local_apic.h"
#include "apic/model/register_page.h"
#include "tests/apic_kvm/guest_program.h"
#include "vmm/irqchip/kick_signal.h"
#include "vmm/kvm/kvm.h"
#include "vmm/kvm/vm.h"
#include "vmm/memory/guest_memory.h"
#include "vmm/vcpu/kick_timer.h"

namespace sipi {

// One vCPU with APIC ID 0, the boot CPU, in real mode with interrupts off. It lives on the thread
// that makes it and runs only inside Apply().
class KvmApic {
 public:
  static absl::StatusOr<std::unique_ptr<KvmApic>> Create(const Kvm& kvm);

  // The guest does `operation`; returns it with its results. Error: a run that does not end within
  // seconds, or an exit that should not be.
  absl::StatusOr<Operation> Apply(const Operation& operation);

  absl::StatusOr<apic::RegisterPage> Page() const;  // KVM_GET_LAPIC
  absl::StatusOr<uint64_t> ApicBase() const;
  absl::StatusOr<uint64_t> TscDeadline() const;
  // KVM_SET_LAPIC: from here on its registers are these.
  absl::Status SetPage(const apic::RegisterPage& page);
  uint8_t LastInterrupt() const;  // that the guest has taken

  // A model that should behave like it.
  const apic::ApicConfig& config() const { return config_; }

 private:
  KvmApic(GuestMemory memory, Vm vm);
  absl::Status SetUp(const Kvm& kvm);
  absl::Status RunToExit();

  GuestMemory memory_;
  Vm vm_;
  Vcpu vcpu_;
  std::optional<KickScope> kicks_;
  KickTimer watchdog_;
  uint64_t watchdog_ns_ = 0;
  apic::ApicConfig config_;
};

}  // namespace sipi
