// A CPU's state after reset, as KVM wants it.
#pragma once

#include "absl/status/status.h"
#include "apic/model/cpu_reset.h"
#include "vmm/kvm/linux_kvm.h"
#include "vmm/kvm/vcpu.h"

namespace sipi {

kvm_regs RegsOf(const apic::CpuResetState& state);

// `fresh` is what KVM gives a new vCPU; whatever CpuResetState does not name stays as there.
kvm_sregs SregsOf(const apic::CpuResetState& state, const kvm_sregs& fresh);

// Gives the vCPU this state at its next KVM_RUN: through kvm_run where `sync_regs` (KvmFacts)
// allows, without any ioctl. With `events_and_debug` also drops pending events and resets the debug
// registers, which a vCPU that has run needs. On the vCPU's thread.
absl::Status ImposeState(Vcpu& vcpu, const kvm_regs& regs, const kvm_sregs& sregs,
                         uint32_t sync_regs, bool events_and_debug);

}  // namespace sipi
