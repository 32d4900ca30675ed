#include "tests/apic_kvm/kvm_apic.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/apic_kvm/program_fixture.h"
#include "vmm/base/status_macros.h"
#include "vmm/cpu/cpuid.h"
#include "vmm/device/monotonic_clock.h"
#include "vmm/vcpu/lapic_page.h"

namespace sipi {
namespace {

constexpr uint64_t kRamBytes = 2 << 20;
constexpr uint64_t kTimeLimitNs = 2'000'000'000;

}  // namespace

KvmApic::KvmApic(GuestMemory memory, Vm vm) : memory_(std::move(memory)), vm_(std::move(vm)) {}

absl::StatusOr<std::unique_ptr<KvmApic>> KvmApic::Create(const Kvm& kvm) {
  InstallKickSignal();
  ASSIGN_OR_RETURN(GuestMemory memory, GuestMemory::Create(kRamBytes));
  ASSIGN_OR_RETURN(Vm vm, Vm::Create(kvm));
  std::unique_ptr<KvmApic> apic(new KvmApic(std::move(memory), std::move(vm)));
  RETURN_IF_ERROR(apic->SetUp(kvm));
  return apic;
}

absl::Status KvmApic::SetUp(const Kvm& kvm) {
  RETURN_IF_ERROR(vm_.SetTssAndIdentityMap());
  RETURN_IF_ERROR(vm_.EnableX2ApicApi());
  RETURN_IF_ERROR(vm_.CreateKernelIrqchip());
  RETURN_IF_ERROR(memory_.RegisterWith(vm_));
  RETURN_IF_ERROR(LoadInterpreter(memory_));
  *memory_.At<uint32_t>(Gpa(kAreaOfIdGpa)).value() = kFirstAreaGpa;
  *memory_.At<uint32_t>(Gpa(kFirstAreaGpa + AreaOffset::kProgram)).value() = kProgramsGpa;
  ASSIGN_OR_RETURN(vcpu_, vm_.CreateVcpu(0));
  ASSIGN_OR_RETURN(const uint32_t tsc_khz, vcpu_.TscKhz());
  ASSIGN_OR_RETURN(const std::vector<kvm_cpuid_entry2> supported, kvm.SupportedCpuid());
  CpuidOptions options;
  options.tsc_khz = tsc_khz;
  const CpuidTemplate cpuid(supported, FlatTopology(1), options);
  RETURN_IF_ERROR(vcpu_.SetCpuid(cpuid.ForCpu(CpuNumber(0))));
  config_.tsc_hz = uint64_t{tsc_khz} * 1000;
  config_.has_cmci = false;              // KVM has it only after KVM_X86_SETUP_MCE
  config_.has_writable_xapic_id = true;  // 11.4.6 leaves it open; as for payloads
  if (const kvm_cpuid_entry2* leaf = FindCpuid(cpuid.entries(), 0x80000008)) {
    config_.phys_addr_bits = leaf->eax & 0xff;
  }
  ASSIGN_OR_RETURN(kvm_sregs sregs, vcpu_.GetSregs());
  ASSIGN_OR_RETURN(kvm_regs regs, vcpu_.GetRegs());
  EnterInterpreter(regs, sregs);
  kicks_.emplace(vcpu_);
  RETURN_IF_ERROR(vcpu_.SetSregs(sregs));
  return vcpu_.SetRegs(regs);
}

absl::StatusOr<Operation> KvmApic::Apply(const Operation& operation) {
  const Operation program[] = {operation, {.code = OpCode::kExit}};
  RETURN_IF_ERROR(memory_.Write(Gpa(kProgramsGpa), std::as_bytes(std::span(program))));
  RETURN_IF_ERROR(RunToExit());
  return **memory_.At<Operation>(Gpa(kProgramsGpa));
}

absl::Status KvmApic::RunToExit() {
  const uint64_t begin_ns = MonotonicNs();
  if (begin_ns + kTimeLimitNs / 2 > watchdog_ns_) {
    watchdog_ns_ = begin_ns + kTimeLimitNs;
    if (const int error = watchdog_.ArmAt(watchdog_ns_); error != 0) {
      return absl::ErrnoToStatus(error, "timer_create");
    }
  }
  while (true) {
    const RunResult result = vcpu_.Run();
    vcpu_.ClearImmediateExit();
    if (result.state == RunState::kInterrupted) {
      if (MonotonicNs() >= begin_ns + kTimeLimitNs / 2) {
        return absl::DeadlineExceededError("the guest hangs");
      }
      continue;
    }
    if (result.state != RunState::kExit) return absl::InternalError("KVM_RUN failed");
    kvm_run& run = vcpu_.run();
    switch (run.exit_reason) {
      case KVM_EXIT_IO:  // the only port that the programs write
        return absl::OkStatus();
      case KVM_EXIT_MMIO:  // the page is not there: reads give ones, as on a bus without a device
        if (run.mmio.is_write == 0) std::memset(run.mmio.data, 0xff, sizeof run.mmio.data);
        break;
      case KVM_EXIT_IOAPIC_EOI:
        break;
      default:
        return absl::InternalError(absl::StrCat("exit ", run.exit_reason));
    }
  }
}

absl::StatusOr<apic::RegisterPage> KvmApic::Page() const {
  ASSIGN_OR_RETURN(const kvm_lapic_state lapic, vcpu_.GetLapic());
  return PageOf(lapic);
}

absl::StatusOr<uint64_t> KvmApic::ApicBase() const { return vcpu_.GetMsr(apic::kMsrApicBase); }

absl::StatusOr<uint64_t> KvmApic::TscDeadline() const {
  return vcpu_.GetMsr(apic::kMsrTscDeadline);
}

absl::Status KvmApic::SetPage(const apic::RegisterPage& page) {
  const kvm_lapic_state lapic = LapicOf(page);
  // Twice: KVM clears the initial count that it has just taken when the page changes the timer's
  // mode to or from TSC deadline.
  RETURN_IF_ERROR(vcpu_.SetLapic(lapic));
  return vcpu_.SetLapic(lapic);
}

uint8_t KvmApic::LastInterrupt() const {
  const uint32_t taken = **memory_.At<uint32_t>(Gpa(kFirstAreaGpa + AreaOffset::kLogCount));
  const uint32_t last = (taken - 1) & 0xff;
  return **memory_.At<uint8_t>(Gpa(kFirstAreaGpa + AreaOffset::kLog + last));
}

}  // namespace sipi
