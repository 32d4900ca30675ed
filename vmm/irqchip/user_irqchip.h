// The irqchip `user`: routes the interrupt commands of the model's local APICs to mailboxes.
//
// Sender's side only; the target's side is the vCPU's thread (vmm/vcpu/user_vcpu.h). INIT and SIPI
// faults are injected here, at the border between the two.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>

#include "apic/model/router.h"
#include "apic/regs/icr.h"
#include "guest/abi/boot_params.h"
#include "vmm/irqchip/cpu_mailbox.h"

namespace sipi {

// What one sender has sent. Not shared between threads.
struct SendCounters {
  uint64_t ipis = 0;  // messages that reached a target, INIT and SIPI not among them
  uint64_t inits = 0;
  uint64_t sipis = 0;
  uint64_t sipis_ignored = 0;    // the target did not wait for one
  uint64_t startup_dropped = 0;  // INITs and SIPIs lost on purpose
  uint64_t undeliverable = 0;    // commands that reached nobody
  uint64_t futex_wakes = 0;
  uint64_t signal_wakes = 0;

  void Count(WakeKind wake) {
    futex_wakes += wake == WakeKind::kFutex ? 1 : 0;
    signal_wakes += wake == WakeKind::kSignal ? 1 : 0;
  }
  SendCounters& operator+=(const SendCounters& other);
};

class UserIrqchip {
 public:
  using MailboxOf = std::function<CpuMailbox&(CpuNumber)>;

  // `ids[i]` is the APIC ID of CPU i, all of them in `mode`; `mailbox_of` must outlive the chip.
  // `kvm_icr`: commands whose combination the SDM calls invalid do what KVM's APIC makes of them.
  UserIrqchip(std::span<const ApicId> ids, apic::ApicMode mode, const abi::FaultSpec& fault,
              MailboxOf mailbox_of, bool kvm_icr = false);

  apic::RoutingTable& routing() { return routing_; }

  // Sends an interrupt command as the CPU `sender`. Any thread that owns `counters`.
  void Send(const apic::Icr& icr, CpuNumber sender, SendCounters& counters);

  // Sends a device's message (I/O APIC, MSI). False: it reached nobody. Any thread, likewise.
  [[nodiscard]] bool SendDevice(const apic::Icr& icr, SendCounters& counters);

  // One message to one CPU, past the routing: the host's sequencer. Any thread, likewise.
  void SendInit(CpuNumber target, SendCounters& counters);
  void SendSipi(CpuNumber target, Vector vector, SendCounters& counters);
  void SendVector(CpuNumber target, Vector vector, bool level, SendCounters& counters);

 private:
  void Deliver(const apic::Icr& icr, bool level, CpuNumber target, SendCounters& counters);
  // Table 11-3 has no such command: with `kvm_icr`, the targets its shorthand names get it.
  void SendInvalid(const apic::Icr& icr, CpuNumber sender, SendCounters& counters);
  bool DropsInit(CpuNumber target);
  bool DropsSipi(CpuNumber target, uint32_t* index);

  apic::RoutingTable routing_;
  const abi::FaultSpec fault_;
  MailboxOf mailbox_of_;
  const bool kvm_icr_;
  std::atomic<uint32_t> faulted_sipis_{0};  // SIPIs to the faulted CPU since its last INIT
};

}  // namespace sipi
