#include "vmm/vcpu/reset_state.h"

#include "vmm/base/status_macros.h"

namespace sipi {
namespace {

// `access` is bits 47:40 of a descriptor; the granularity and size bits (55:52) are 0 in real mode.
kvm_segment SegmentOf(const apic::SegmentReset& reset) {
  kvm_segment segment = {};
  segment.base = reset.base;
  segment.limit = reset.limit;
  segment.selector = reset.selector;
  segment.type = reset.access & 0xf;
  segment.s = reset.access >> 4 & 1;
  segment.dpl = reset.access >> 5 & 3;
  segment.present = reset.access >> 7 & 1;
  return segment;
}

}  // namespace

kvm_regs RegsOf(const apic::CpuResetState& state) {
  kvm_regs regs = {};
  regs.rdx = state.rdx;
  regs.rip = state.rip;
  regs.rflags = state.rflags;
  return regs;
}

kvm_sregs SregsOf(const apic::CpuResetState& state, const kvm_sregs& fresh) {
  kvm_sregs sregs = fresh;
  sregs.cs = SegmentOf(state.cs);
  sregs.ds = sregs.es = sregs.fs = sregs.gs = sregs.ss = SegmentOf(state.data);
  sregs.ldt = SegmentOf(state.ldtr);
  sregs.tr = SegmentOf(state.tr);
  sregs.gdt.base = state.gdtr.base;
  sregs.gdt.limit = state.gdtr.limit;
  sregs.idt.base = state.idtr.base;
  sregs.idt.limit = state.idtr.limit;
  sregs.cr0 = state.cr0;
  sregs.cr2 = state.cr2;
  sregs.cr3 = state.cr3;
  sregs.cr4 = state.cr4;
  sregs.cr8 = state.cr8;
  sregs.efer = state.efer;
  return sregs;
}

absl::Status ImposeState(Vcpu& vcpu, const kvm_regs& regs, const kvm_sregs& sregs,
                         uint32_t sync_regs, bool events_and_debug) {
  if (events_and_debug) {
    kvm_vcpu_events events = {};
    events.flags = KVM_VCPUEVENT_VALID_NMI_PENDING | KVM_VCPUEVENT_VALID_SHADOW;
    RETURN_IF_ERROR(vcpu.SetEvents(events));
    const apic::CpuResetState reset;
    kvm_debugregs debug = {};
    debug.dr6 = reset.dr6;
    debug.dr7 = reset.dr7;
    RETURN_IF_ERROR(vcpu.SetDebugRegs(debug));
  }
  constexpr uint32_t kBoth = KVM_SYNC_X86_REGS | KVM_SYNC_X86_SREGS;
  if ((sync_regs & kBoth) != kBoth) {
    RETURN_IF_ERROR(vcpu.SetSregs(sregs));
    return vcpu.SetRegs(regs);
  }
  vcpu.synced_regs() = regs;
  vcpu.synced_sregs() = sregs;
  vcpu.MarkDirty(kBoth);
  return absl::OkStatus();
}

}  // namespace sipi
