// One virtual machine: memory regions, irqchip, MSR policy, vCPU creation.
// Source: Linux Documentation/virt/kvm/api.rst ("KVM API"), sections named after the ioctls.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apic/regs/icr.h"
#include "apic/regs/types.h"
#include "vmm/kvm/ioctl.h"
#include "vmm/kvm/kvm.h"
#include "vmm/kvm/linux_kvm.h"
#include "vmm/kvm/vcpu.h"

namespace sipi {

// CreateVcpu, SignalMsi and ResetSregs may be called from many threads at once; the rest belongs to
// the thread that sets the machine up. vCPUs must be destroyed by their owners; they keep the VM's
// kernel object alive by themselves.
class Vm {
 public:
  // KVM_CREATE_VM.
  static absl::StatusOr<Vm> Create(const Kvm& kvm);
  Vm(Vm&&) noexcept;
  Vm& operator=(Vm&&) noexcept;
  ~Vm();

  const KvmFacts& facts() const { return facts_; }

  // KVM_ENABLE_CAP. `name` is the capability's, for the error.
  absl::Status EnableCap(uint32_t capability, uint64_t arg0, absl::string_view name);

  // KVM_SET_USER_MEMORY_REGION.
  absl::Status SetMemoryRegion(uint32_t slot, Gpa gpa, uint64_t bytes, void* host);

  // Three pages that KVM on Intel needs for real mode without unrestricted guest, and one for its
  // identity page table. Both below 4 GiB, outside RAM and the APIC page.
  // Before the first vCPU; harmless elsewhere.
  absl::Status SetTssAndIdentityMap();

  // The whole irqchip in KVM (PICs, IOAPIC, local APICs), before the first vCPU.
  absl::Status CreateKernelIrqchip();
  absl::Status CreatePit2();  // needs the kernel irqchip; port 61H is KVM's too then
  // KVM_IRQ_LINE: a line of the kernel irqchip. KVM refuses none that its chips have. Any thread.
  void SetIrqLine(uint32_t gsi, bool high) const;
  // KVM_GET_PIT2, KVM_GET_IRQCHIP: the timer of the kernel irqchip runs and its line is let through
  // by PIC or IOAPIC. True also where KVM does not say.
  bool TimerMayInterrupt() const;
  // KVM_SET_IRQCHIP: the 8259s as a PC's firmware leaves them, vectors 08H and 70H, all unmasked.
  absl::Status ProgramPicsAsFirmware();
  // Local APICs in KVM, the rest in user space (KVM_CAP_SPLIT_IRQCHIP), before the first vCPU.
  absl::Status CreateSplitIrqchip(uint32_t ioapic_routes = 24);
  // KVM_SET_GSI_ROUTING: GSI i carries the message `messages[i]`. In a split irqchip that tells KVM
  // of which level-triggered vectors the end is to exit (KVM_EXIT_IOAPIC_EOI). Any thread.
  absl::Status SetMsiRoutes(std::span<const apic::Icr> messages) const;

  // KVM_CAP_X2APIC_API: 32-bit APIC IDs in MSIs and in KVM_GET/SET_LAPIC, and no broadcast for ID
  // 0xff in x2APIC mode.
  absl::Status EnableX2ApicApi();

  // KVM_CAP_X86_USER_SPACE_MSR: accesses that KVM does not know, cannot do, or that DenyMsrs
  // filtered come as KVM_EXIT_X86_RDMSR/WRMSR. `reasons` are KVM_MSR_EXIT_REASON_*.
  absl::Status EnableUserSpaceMsrs(uint32_t reasons = KVM_MSR_EXIT_REASON_INVAL |
                                                      KVM_MSR_EXIT_REASON_UNKNOWN |
                                                      KVM_MSR_EXIT_REASON_FILTER);
  // KVM_X86_SET_MSR_FILTER: guest accesses to these MSRs exit with reason FILTER;
  // all others are KVM's as before. Call it first of all on a new VM: after other set-up it waits
  // for an SRCU grace period (15 ms and more). At most 16 MSRs. KVM never filters x2APIC's
  // 800H-8FFH.
  absl::Status DenyMsrs(std::span<const uint32_t> msrs);

  // KVM_SIGNAL_MSI with the interrupt command `icr` (its shorthand must be kNone);
  // INIT and Start Up work too. Returns whether KVM delivered it to a vCPU. Needs an in-kernel
  // local APIC; destinations above 255 need EnableX2ApicApi. Any thread.
  absl::StatusOr<bool> SignalMsi(const apic::Icr& icr) const;

  // KVM_CREATE_VCPU and its kvm_run mapping. `id` is the APIC ID; the boot CPU is the
  // one set by SetBootCpuId, by default ID 0. Any thread. Errors name ioctl, id and remedy.
  absl::StatusOr<Vcpu> CreateVcpu(uint32_t id);

  // KVM_SET_BOOT_CPU_ID: before the first vCPU.
  absl::Status SetBootCpuId(uint32_t id);

  // Special registers of a vCPU after creation, BSP bit of apic_base clear. Asked of KVM once per
  // VM, through `fresh`, a vCPU that has not run. Any thread.
  absl::StatusOr<kvm_sregs> ResetSregs(const Vcpu& fresh);

  const IoctlFd& device() const { return fd_; }

 private:
  struct ResetCache;
  Vm(IoctlFd fd, const KvmFacts& facts);

  IoctlFd fd_;
  KvmFacts facts_;
  std::unique_ptr<ResetCache> reset_;
};

// The MSI address and data that carry `icr` (SDM vol 3A, 11.11 "Message Signalled Interrupts"; the
// upper 24 bits of the destination go to address_hi bits 31:8).
struct MsiMessage {
  uint32_t address_lo = 0;
  uint32_t address_hi = 0;
  uint32_t data = 0;
};
MsiMessage MsiFor(const apic::Icr& icr);

}  // namespace sipi
