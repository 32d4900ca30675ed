#include "vmm/vcpu/kernel_vcpu.h"

#include "absl/strings/str_cat.h"
#include "apic/model/register_page.h"
#include "apic/regs/icr.h"
#include "apic/regs/registers.h"
#include "vmm/kvm/exit_names.h"
#include "vmm/kvm/linux_kvm.h"
#include "vmm/vcpu/fault_report.h"
#include "vmm/vcpu/lapic_page.h"

namespace sipi {
namespace {

constexpr uint64_t kRflagsIf = 1u << 9;
constexpr uint64_t kNsPerMs = 1'000'000;

bool AnyRequest(const apic::RegisterPage& page) {
  for (uint32_t i = 0; i < 8; ++i) {
    if (page.Get(static_cast<uint32_t>(apic::Reg::kIrr0) + i * 0x10) != 0) return true;
  }
  return false;
}

}  // namespace

bool VcpuInspection::Blocked() const {
  switch (mp_state) {
    case KVM_MP_STATE_UNINITIALIZED:
    case KVM_MP_STATE_INIT_RECEIVED:
      return true;
    case KVM_MP_STATE_HALTED:
      return !interrupts_enabled || (!interrupt_pending && !timer_armed);
    default:
      return false;
  }
}

VcpuThread::Next KernelVcpu::Prepare() {
  const uint32_t work = mailbox().TakeWork();
  if ((work & CpuMailbox::kStop) != 0) return Next::kLeave;
  if ((work & CpuMailbox::kInspect) != 0) {
    inspection_ = Inspect();
    answered_round_.store(asked_round_.load(std::memory_order_acquire), std::memory_order_release);
  }
  if (NeverStarts()) {
    mailbox().Sleep(~0u, {});
    return Next::kAgain;
  }
  if (!started_) {
    started_ = true;
    if (FaultIs(abi::Fault::kLate)) {
      HoldFor(world().fault.value * kNsPerMs);
      return Next::kAgain;
    }
    if (is_boot_cpu()) log().Emit(abi::TraceEvent::kFirstRun);
  }
  return OfferExtInt() ? Next::kEnter : Next::kLeave;
}

// As UserVcpu's. KVM needs it for more than the guest's sake: until some local APIC is written, the
// only vCPU is not in the map by which KVM finds the target of a message (kvm_recalculate_apic_map
// runs while the vCPU is being made, before it counts), and an INIT to it would get lost.
void KernelVcpu::HandOver() {
  if (const absl::Status status = ProgramLapic(); !status.ok()) {
    Fault(absl::StrCat("CPU ", cpu().value, ": ", status.message()));
  }
}

absl::Status KernelVcpu::ProgramLapic() {
  const absl::StatusOr<kvm_lapic_state> lapic = vcpu().GetLapic();
  if (!lapic.ok()) return lapic.status();
  apic::RegisterPage page = PageOf(*lapic);
  page.Set(apic::Reg::kSvr, apic::kSvrEnable | 0xff);
  page.Set(apic::Reg::kLvtLint0, static_cast<uint32_t>(apic::DeliveryMode::kExtInt) << 8);
  page.Set(apic::Reg::kLvtLint1, static_cast<uint32_t>(apic::DeliveryMode::kNmi) << 8);
  return vcpu().SetLapic(LapicOf(page));
}

// In a split irqchip the 8259 is ours and its interrupt goes in as KVM_INTERRUPT, for which KVM
// looks at LINT0 itself (it says ready only where LINT0 lets ExtINT through).
bool KernelVcpu::OfferExtInt() {
  if (world().board == nullptr || !is_boot_cpu()) return true;
  InterruptLines& lines = world().board->lines();
  run().request_interrupt_window = 0;
  if (!lines.IntPin()) return true;
  if (run().ready_for_interrupt_injection == 0 || run().if_flag == 0) {
    run().request_interrupt_window = 1;
    return true;
  }
  run().ready_for_interrupt_injection = 0;
  const absl::Status status = vcpu().Interrupt(lines.Acknowledge().value);
  if (!status.ok()) Fault(absl::StrCat("CPU ", cpu().value, ": ", status.message()));
  return status.ok();
}

bool KernelVcpu::FaultIs(abi::Fault kind) const {
  return world().fault.kind == kind && world().fault.cpu == cpu().value && !is_boot_cpu();
}

bool KernelVcpu::NeverStarts() const { return FaultIs(abi::Fault::kNoStart); }

bool KernelVcpu::HandleChipExit() {
  switch (run().exit_reason) {
    case KVM_EXIT_MMIO:
      BoardMmio();
      return true;
    case KVM_EXIT_X86_RDMSR:
    case KVM_EXIT_X86_WRMSR:
      // An MSR that KVM does not know: the guest gets #GP.
      run().msr.error = 1;
      ++tally().unhandled_msr;
      return true;
    case KVM_EXIT_IRQ_WINDOW_OPEN:
      return true;
    case KVM_EXIT_IOAPIC_EOI:
      if (world().board != nullptr) world().board->lines().EndOfInterrupt(Vector(run().eoi.vector));
      return true;
    default:
      return false;
  }
}

void KernelVcpu::OnAgain() {
  // KVM woke this AP for an INIT or SIPI; the next KVM_RUN executes guest code.
  log().Emit(abi::TraceEvent::kFirstRun);
  ++tally().startups_taken;
}

VcpuInspection KernelVcpu::Inspect() {
  VcpuInspection result;
  CompletePendingExit();
  // What cannot be read counts as running, which decides nothing.
  result.mp_state = vcpu().GetMpState().value_or(KVM_MP_STATE_RUNNABLE);
  const kvm_regs regs = vcpu().GetRegs().value_or(kvm_regs{});
  result.rip = regs.rip;
  result.interrupts_enabled = (regs.rflags & kRflagsIf) != 0;
  const absl::StatusOr<kvm_lapic_state> lapic = vcpu().GetLapic();
  if (!lapic.ok()) {
    result.mp_state = KVM_MP_STATE_RUNNABLE;
    return result;
  }
  const apic::RegisterPage page = PageOf(*lapic);
  result.interrupt_pending = AnyRequest(page);
  const bool masked = (page.Get(apic::Reg::kLvtTimer) & apic::kLvtMasked) != 0;
  const bool counting = page.Get(apic::Reg::kTimerCurrent) != 0;
  const bool deadline = vcpu().GetMsr(apic::kMsrTscDeadline).value_or(0) != 0;
  result.timer_armed = !masked && (counting || deadline);
  return result;
}

void KernelVcpu::AskInspection(uint32_t round) {
  asked_round_.store(round, std::memory_order_release);
  mailbox().Post(CpuMailbox::kInspect);
}

const VcpuInspection* KernelVcpu::InspectionOf(uint32_t round) const {
  return answered_round_.load(std::memory_order_acquire) == round ? &inspection_ : nullptr;
}

std::string KernelVcpu::DoingNow() {
  if (NeverStarts()) return "waiting for SIPI (held back: --fault=no-start)";
  const uint32_t mp_state = vcpu().GetMpState().value_or(KVM_MP_STATE_RUNNABLE);
  const absl::StatusOr<kvm_regs> regs = vcpu().GetRegs();
  const int interrupts = regs.ok() && (regs->rflags & kRflagsIf) != 0 ? 1 : 0;
  switch (mp_state) {
    case KVM_MP_STATE_UNINITIALIZED:
      return "waiting for INIT";
    case KVM_MP_STATE_INIT_RECEIVED:
      return "waiting for SIPI";
    case KVM_MP_STATE_HALTED:
      return absl::StrCat("halted, IF=", interrupts, ", ", DescribePlace(vcpu()));
    case KVM_MP_STATE_RUNNABLE:
      return absl::StrCat("running, IF=", interrupts, ", ", DescribePlace(vcpu()));
    default:
      return absl::StrCat(MpStateName(mp_state), ", ", DescribePlace(vcpu()));
  }
}

}  // namespace sipi
