// One vCPU: its descriptor, its shared kvm_run page, its state.
// Source: Linux Documentation/virt/kvm/api.rst ("KVM API"), sections named after the ioctls.
//
// Threads: a Vcpu is used by one thread at a time (KVM holds the vCPU's mutex over an ioctl, so
// another thread would wait until KVM_RUN returns). RequestImmediateExit is for any thread.
#pragma once

#include <signal.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "vmm/kvm/ioctl.h"
#include "vmm/kvm/linux_kvm.h"

namespace sipi {

// How KVM_RUN returned. EINTR and EAGAIN are states, not errors.
enum class RunState : uint8_t {
  kExit,         // run().exit_reason says why
  kInterrupted,  // EINTR: a signal, or immediate_exit was set
  kAgain,        // EAGAIN: an uninitialised vCPU was woken by INIT or SIPI; call Run again
  kFailed,       // another errno
};

struct RunResult {
  RunState state = RunState::kExit;
  int error = 0;  // errno of kFailed
};

class Vcpu {
 public:
  Vcpu() = default;
  Vcpu(Vcpu&& other) noexcept;
  Vcpu& operator=(Vcpu&& other) noexcept;
  Vcpu(const Vcpu&) = delete;
  Vcpu& operator=(const Vcpu&) = delete;
  ~Vcpu();  // unmaps kvm_run, closes the descriptor

  uint32_t id() const { return id_; }  // as given to KVM_CREATE_VCPU: the APIC ID
  bool valid() const { return run_ != nullptr; }

  // KVM_RUN.
  RunResult Run();
  kvm_run& run() { return *run_; }
  const kvm_run& run() const { return *run_; }

  // Makes the present or next Run return kInterrupted without entering the guest (kvm_run's
  // immediate_exit; a Run already inside the guest also needs a signal). Any thread; a plain byte
  // store, so also fit for a signal handler.
  void RequestImmediateExit();
  void ClearImmediateExit();

  // State. Errors name the ioctl and the vCPU.
  absl::StatusOr<kvm_regs> GetRegs() const;
  absl::Status SetRegs(const kvm_regs& regs);
  absl::StatusOr<kvm_sregs> GetSregs() const;
  absl::Status SetSregs(const kvm_sregs& sregs);
  absl::StatusOr<kvm_fpu> GetFpu() const;
  absl::Status SetFpu(const kvm_fpu& fpu);
  absl::StatusOr<kvm_debugregs> GetDebugRegs() const;
  absl::Status SetDebugRegs(const kvm_debugregs& regs);
  absl::StatusOr<kvm_xcrs> GetXcrs() const;
  absl::Status SetXcrs(const kvm_xcrs& xcrs);
  absl::StatusOr<kvm_vcpu_events> GetEvents() const;
  absl::Status SetEvents(const kvm_vcpu_events& events);
  absl::StatusOr<kvm_lapic_state> GetLapic() const;  // in-kernel irqchip only
  absl::Status SetLapic(const kvm_lapic_state& lapic);
  absl::StatusOr<uint32_t> GetMpState() const;  // KVM_MP_STATE_*
  absl::Status SetMpState(uint32_t mp_state);

  absl::StatusOr<uint64_t> GetMsr(uint32_t index) const;
  absl::Status SetMsr(uint32_t index, uint64_t value);

  // KVM_SET_CPUID2. At most 256 entries. Before the first Run.
  absl::Status SetCpuid(std::span<const kvm_cpuid_entry2> entries);

  // KVM_INTERRUPT: queues `vector`. Without an in-kernel irqchip only, and only
  // while run().ready_for_interrupt_injection is set.
  absl::Status Interrupt(uint8_t vector);
  absl::Status Nmi();  // KVM_NMI

  // KVM_SET_SIGNAL_MASK: signals blocked while the vCPU runs.
  absl::Status SetSignalMask(const sigset_t& blocked);

  // KVM_GET_TSC_KHZ.
  absl::StatusOr<uint32_t> TscKhz() const;

  // guest TSC = host TSC + offset, for guests whose TSC is not scaled. From KVM's attribute
  // (KVM_VCPU_TSC_OFFSET) or, where that is missing, from MSR 10H read between two RDTSC; then it
  // is right to some microseconds.
  absl::StatusOr<int64_t> TscOffset() const;

  // Registers shared through kvm_run without ioctls (KVM_CAP_SYNC_REGS). Mask bits
  // are KVM_SYNC_X86_REGS, _SREGS, _EVENTS; only those of KvmFacts::sync_regs.
  void SyncOnExit(uint32_t mask) {
    run_->kvm_valid_regs = mask;
  }  // which Run writes out at each exit
  void MarkDirty(uint32_t mask) {
    run_->kvm_dirty_regs |= mask;
  }  // which Run reads at its next entry
  kvm_regs& synced_regs() { return run_->s.regs.regs; }
  kvm_sregs& synced_sregs() { return run_->s.regs.sregs; }
  kvm_vcpu_events& synced_events() { return run_->s.regs.events; }

  // Bytes of a KVM_EXIT_IO, size * count of them.
  std::span<std::byte> io_data();

  // Value of a counter of KVM's binary statistics (KVM_GET_STATS_FD), e.g.
  // "insn_emulation", "exits", "halt_exits". Errors: NotFound if KVM has no such counter,
  // Unimplemented without KVM_CAP_BINARY_STATS_FD.
  absl::StatusOr<uint64_t> ReadStat(absl::string_view name) const;

 private:
  friend class Vm;
  Vcpu(IoctlFd fd, uint32_t id, kvm_run* run, size_t run_bytes)
      : fd_(std::move(fd)), id_(id), run_(run), run_bytes_(run_bytes) {}
  absl::Status Failed(absl::string_view ioctl_name) const;  // from errno

  IoctlFd fd_;
  uint32_t id_ = 0;
  kvm_run* run_ = nullptr;
  size_t run_bytes_ = 0;
};

}  // namespace sipi
