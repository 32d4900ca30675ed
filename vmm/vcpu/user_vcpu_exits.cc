// The exits of a vCPU with the model's APIC: HLT, x2APIC and APIC_BASE MSRs, the xAPIC page.
#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "vmm/kvm/linux_kvm.h"
#include "vmm/vcpu/user_vcpu.h"

namespace sipi {
namespace {

constexpr uint64_t kApicPageBytes = 0x1000;
constexpr uint32_t kEndOfIrr = static_cast<uint32_t>(apic::Reg::kIrr0) + 8 * 16;

bool IsX2ApicMsr(uint32_t index) {
  return index >= apic::kX2ApicMsrFirst && index <= apic::kX2ApicMsrLast;
}

}  // namespace

void UserVcpu::AfterRun() {
  // MOV CR8 does not exit: KVM hands the value over at the next exit (KVM API, section 5, cr8).
  const uint8_t cr8 = static_cast<uint8_t>(run().cr8);
  if (cr8 == apic_.Cr8()) return;
  apic_.SetCr8(cr8);
  Publish();
}

bool UserVcpu::HandleChipExit() {
  switch (run().exit_reason) {
    case KVM_EXIT_HLT: {
      const absl::StatusOr<bool> ends = HltEndsAtOnce();
      halted_ = !ends.value_or(false);
      if (ends.ok()) return true;
      Fault(absl::StrCat("CPU ", cpu().value, ": ", ends.status().message()));
      return false;
    }
    case KVM_EXIT_MMIO:
      HandleMmio();
      return true;
    case KVM_EXIT_X86_RDMSR:
      HandleRdmsr();
      return true;
    case KVM_EXIT_X86_WRMSR:
      HandleWrmsr();
      return !faulted();
    case KVM_EXIT_IRQ_WINDOW_OPEN:
    case KVM_EXIT_SET_TPR:
      return true;
    default:
      return false;
  }
}

void UserVcpu::HandleMmio() {
  auto& mmio = run().mmio;
  const uint64_t page = apic::ApicBaseAddress(apic_.ReadApicBase());
  const bool ours = apic_.mode() == apic::ApicMode::kXApic && mmio.phys_addr >= page &&
                    mmio.phys_addr - page < kApicPageBytes;
  if (!ours) return BoardMmio();
  const uint32_t offset = static_cast<uint32_t>(mmio.phys_addr - page);
  const uint32_t bytes = std::min<uint32_t>(mmio.len, sizeof mmio.data);
  TakeArrived(offset, mmio.is_write != 0);
  uint64_t value = 0;
  if (mmio.is_write != 0) {
    std::memcpy(&value, mmio.data, bytes);
    Apply(apic_.StoreMmio(offset, bytes, value, Now()));
  } else {
    value = apic_.LoadMmio(offset, bytes, Now());
    std::memcpy(mmio.data, &value, bytes);
  }
}

void UserVcpu::HandleRdmsr() {
  auto& msr = run().msr;
  msr.error = 0;
  if (IsX2ApicMsr(msr.index)) {
    TakeArrived((msr.index - apic::kX2ApicMsrFirst) * 16, false);
    const apic::ReadResult result = apic_.ReadMsr(msr.index, Now());
    msr.error = result.fault ? 1 : 0;
    msr.data = result.value;
  } else if (msr.index == apic::kMsrApicBase) {
    msr.data = apic_.ReadApicBase();
  } else if (msr.index == apic::kMsrTscDeadline) {
    const apic::ReadResult result = apic_.ReadTscDeadlineMsr(Now());
    msr.error = result.fault ? 1 : 0;
    msr.data = result.value;
  } else {
    msr.error = 1;  // #GP, as for any MSR that a CPU does not have
    ++tally().unhandled_msr;
  }
}

void UserVcpu::HandleWrmsr() {
  auto& msr = run().msr;
  apic::WriteEffect effect;
  if (IsX2ApicMsr(msr.index)) {
    TakeArrived((msr.index - apic::kX2ApicMsrFirst) * 16, true);
    effect = apic_.WriteMsr(msr.index, msr.data, Now());
  } else if (msr.index == apic::kMsrApicBase) {
    effect = apic_.WriteApicBase(msr.data);
  } else if (msr.index == apic::kMsrTscDeadline) {
    RefreshTscOffset();
    effect = apic_.WriteTscDeadline(msr.data, Now());
  } else {
    effect.fault = true;
    ++tally().unhandled_msr;
  }
  msr.error = effect.fault ? 1 : 0;
  if (!effect.fault) Apply(effect);
}

// An interrupt that was sent earlier is in IRR for whoever reads that, and was accepted before a
// software disable (SDM vol 3A, 11.4.7.2), although this thread has not got to it yet.
void UserVcpu::TakeArrived(uint32_t offset, bool is_write) {
  const bool is_irr =
      offset >= static_cast<uint32_t>(apic::Reg::kIrr0) && offset < kEndOfIrr && !is_write;
  const bool is_svr = offset == static_cast<uint32_t>(apic::Reg::kSvr) && is_write;
  if (!is_irr && !is_svr) return;
  if (mailbox().HasWork()) TakeVectors();
  AcceptDue();
}

void UserVcpu::Apply(const apic::WriteEffect& effect) {
  using Kind = apic::WriteEffect::Kind;
  switch (effect.kind) {
    case Kind::kNone:
      return;
    case Kind::kEoi:
      if (effect.eoi_level && world().board != nullptr) {
        world().board->lines().EndOfInterrupt(effect.eoi_vector);
      }
      return;
    case Kind::kIpi:
      world().chip->Send(effect.icr, cpu(), tally().sends);
      return;
    case Kind::kSelfIpi:
      ++tally().sends.ipis;
      return;
    case Kind::kPriority:
      Publish();
      return;
    case Kind::kRouting:
      PublishReachability();
      RefreshTimer();
      return;
    case Kind::kTimer:
      RefreshTimer();
      return;
    case Kind::kModeChange:
      PublishReachability();
      // KVM's own copy decides whether CPUID 1 EDX[9] shows an APIC (SDM vol 3A, 11.4.3).
      if (!vcpu().SetMsr(apic::kMsrApicBase, apic_.ReadApicBase()).ok()) ++tally().unhandled_msr;
      mailbox().startup().SetBsp(apic_.bsp());
      RefreshTimer();
      return;
  }
}

void UserVcpu::Publish() { world().chip->routing().Publish(cpu(), apic_.Routing()); }

// An I/O APIC's level interrupt may wait for a CPU that takes it.
void UserVcpu::PublishReachability() {
  Publish();
  if (world().board != nullptr) world().board->lines().TargetsChanged();
}

void UserVcpu::RefreshTimer() { timer_deadline_ns_ = apic_.NextDeadlineNs(Now()); }

}  // namespace sipi
