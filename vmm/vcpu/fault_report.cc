#include "vmm/vcpu/fault_report.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "vmm/kvm/exit_names.h"
#include "vmm/kvm/linux_kvm.h"
#include "vmm/vcpu/guest_linear.h"

namespace sipi {
namespace {

constexpr size_t kCodeBytes = 15;  // the longest instruction

std::string Hex(const std::vector<uint8_t>& bytes) {
  std::string text;
  for (const uint8_t byte : bytes) absl::StrAppendFormat(&text, " %02x", byte);
  return text;
}

// The bytes that KVM hands over with an emulation failure, if it does (KVM API, section 5,
// kvm_run.emulation_failure).
std::vector<uint8_t> BytesFromKvm(const kvm_run& run) {
  const auto& failure = run.emulation_failure;
  constexpr uint64_t kHasBytes = KVM_INTERNAL_ERROR_EMULATION_FLAG_INSTRUCTION_BYTES;
  const bool has_bytes = run.exit_reason == KVM_EXIT_INTERNAL_ERROR &&
                         failure.suberror == KVM_INTERNAL_ERROR_EMULATION && failure.ndata >= 3 &&
                         (failure.flags & kHasBytes) != 0;
  if (!has_bytes) return {};
  const size_t count = std::min<size_t>(failure.insn_size, sizeof failure.insn_bytes);
  return {failure.insn_bytes, failure.insn_bytes + count};
}

std::string Reason(CpuNumber cpu, const kvm_run& run) {
  const std::string on = absl::StrCat(" on CPU ", cpu.value);
  switch (run.exit_reason) {
    case KVM_EXIT_SHUTDOWN:
      return absl::StrCat("triple fault", on);
    case KVM_EXIT_FAIL_ENTRY:
      return absl::StrFormat(
          "failed entry%s (KVM_EXIT_FAIL_ENTRY): hardware reason 0x%x, on host "
          "core %u; the vCPU's state is invalid",
          on, run.fail_entry.hardware_entry_failure_reason, run.fail_entry.cpu);
    case KVM_EXIT_INTERNAL_ERROR:
      return absl::StrFormat("KVM internal error%s: %s (sub-error %u)", on,
                             InternalErrorName(run.internal.suberror), run.internal.suberror);
    case KVM_EXIT_SYSTEM_EVENT:
      return absl::StrFormat("system event %u%s", run.system_event.type, on);
    default:
      return absl::StrFormat("%s (%u)%s, which sipi does not handle",
                             ExitReasonName(run.exit_reason), run.exit_reason, on);
  }
}

}  // namespace

std::string DescribeRegisters(CpuNumber cpu, const Vcpu& vcpu, const GuestMemory* memory) {
  const absl::StatusOr<kvm_regs> regs = vcpu.GetRegs();
  const absl::StatusOr<kvm_sregs> sregs = vcpu.GetSregs();
  const std::string who = absl::StrCat("CPU ", cpu.value, " (APIC ID ", vcpu.id(), ")");
  if (!regs.ok() || !sregs.ok()) {
    return absl::StrCat(who,
                        ": no registers: ", (regs.ok() ? sregs.status() : regs.status()).message());
  }
  std::string text = absl::StrFormat(
      "%s: RIP 0x%x, CS 0x%04x base 0x%x, RSP 0x%x, RFLAGS 0x%x, CR0 0x%x, CR2 0x%x, CR3 0x%x, "
      "CR4 0x%x, EFER 0x%x",
      who, regs->rip, sregs->cs.selector, sregs->cs.base, regs->rsp, regs->rflags, sregs->cr0,
      sregs->cr2, sregs->cr3, sregs->cr4, sregs->efer);
  absl::StrAppendFormat(&text, ", RAX 0x%x, RBX 0x%x, RCX 0x%x, RDX 0x%x, RSI 0x%x, RDI 0x%x",
                        regs->rax, regs->rbx, regs->rcx, regs->rdx, regs->rsi, regs->rdi);
  absl::StrAppendFormat(&text, ", IDT base 0x%x limit 0x%x", sregs->idt.base, sregs->idt.limit);
  std::vector<uint8_t> code = BytesFromKvm(vcpu.run());
  if (code.empty() && memory != nullptr) code = CodeBytes(*regs, *sregs, *memory, kCodeBytes);
  absl::StrAppend(&text, "; bytes at RIP:", code.empty() ? " unreadable" : Hex(code));
  return text;
}

std::string DescribeFatalExit(CpuNumber cpu, const Vcpu& vcpu, const GuestMemory* memory) {
  return absl::StrCat(Reason(cpu, vcpu.run()), "; ", DescribeRegisters(cpu, vcpu, memory));
}

std::string DescribePlace(const Vcpu& vcpu) {
  constexpr uint64_t kCr0ProtectionEnable = 1;
  const absl::StatusOr<kvm_regs> regs = vcpu.GetRegs();
  const absl::StatusOr<kvm_sregs> sregs = vcpu.GetSregs();
  if (!regs.ok() || !sregs.ok()) return "RIP unknown";
  if ((sregs->cr0 & kCr0ProtectionEnable) != 0) return absl::StrFormat("RIP 0x%x", regs->rip);
  return absl::StrFormat("CS:IP %04x:%04x", sregs->cs.selector, regs->rip);
}

}  // namespace sipi
