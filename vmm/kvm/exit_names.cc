#include "vmm/kvm/exit_names.h"

#include <array>
#include <cstddef>

#include "vmm/kvm/linux_kvm.h"

namespace sipi {
namespace {

// By number (linux/kvm.h); the last ones are newer than Debian 12's headers.
constexpr std::array<const char*, 41> kExitReasons = {
    "KVM_EXIT_UNKNOWN",
    "KVM_EXIT_EXCEPTION",
    "KVM_EXIT_IO",
    "KVM_EXIT_HYPERCALL",
    "KVM_EXIT_DEBUG",
    "KVM_EXIT_HLT",
    "KVM_EXIT_MMIO",
    "KVM_EXIT_IRQ_WINDOW_OPEN",
    "KVM_EXIT_SHUTDOWN",
    "KVM_EXIT_FAIL_ENTRY",
    "KVM_EXIT_INTR",
    "KVM_EXIT_SET_TPR",
    "KVM_EXIT_TPR_ACCESS",
    "KVM_EXIT_S390_SIEIC",
    "KVM_EXIT_S390_RESET",
    "KVM_EXIT_DCR",
    "KVM_EXIT_NMI",
    "KVM_EXIT_INTERNAL_ERROR",
    "KVM_EXIT_OSI",
    "KVM_EXIT_PAPR_HCALL",
    "KVM_EXIT_S390_UCONTROL",
    "KVM_EXIT_WATCHDOG",
    "KVM_EXIT_S390_TSCH",
    "KVM_EXIT_EPR",
    "KVM_EXIT_SYSTEM_EVENT",
    "KVM_EXIT_S390_STSI",
    "KVM_EXIT_IOAPIC_EOI",
    "KVM_EXIT_HYPERV",
    "KVM_EXIT_ARM_NISV",
    "KVM_EXIT_X86_RDMSR",
    "KVM_EXIT_X86_WRMSR",
    "KVM_EXIT_DIRTY_RING_FULL",
    "KVM_EXIT_AP_RESET_HOLD",
    "KVM_EXIT_X86_BUS_LOCK",
    "KVM_EXIT_XEN",
    "KVM_EXIT_RISCV_SBI",
    "KVM_EXIT_RISCV_CSR",
    "KVM_EXIT_NOTIFY",
    "KVM_EXIT_LOONGARCH_IOCSR",
    "KVM_EXIT_MEMORY_FAULT",
    "KVM_EXIT_TDX",
};
static_assert(KVM_EXIT_NOTIFY == 37, "the table is indexed by the reason's number");

constexpr std::array<const char*, 11> kMpStates = {
    "RUNNABLE",   "UNINITIALIZED", "INIT_RECEIVED", "HALTED",        "SIPI_RECEIVED", "STOPPED",
    "CHECK_STOP", "OPERATING",     "LOAD",          "AP_RESET_HOLD", "SUSPENDED",
};
static_assert(KVM_MP_STATE_SUSPENDED == 10, "the table is indexed by the state's number");

template <size_t kSize>
const char* NameOr(const std::array<const char*, kSize>& names, uint32_t number,
                   const char* otherwise) {
  return number < kSize ? names[number] : otherwise;
}

}  // namespace

const char* ExitReasonName(uint32_t exit_reason) {
  return NameOr(kExitReasons, exit_reason, "unknown exit reason");
}

const char* InternalErrorName(uint32_t suberror) {
  switch (suberror) {
    case KVM_INTERNAL_ERROR_EMULATION:
      return "emulation failure";
    case KVM_INTERNAL_ERROR_SIMUL_EX:
      return "simultaneous exceptions";
    case KVM_INTERNAL_ERROR_DELIVERY_EV:
      return "exit during the delivery of an event";
    case KVM_INTERNAL_ERROR_UNEXPECTED_EXIT_REASON:
      return "unexpected hardware exit reason";
    default:
      return "unknown internal error";
  }
}

const char* MsrExitReasonName(uint32_t reason) {
  switch (reason) {
    case KVM_MSR_EXIT_REASON_INVAL:
      return "invalid";
    case KVM_MSR_EXIT_REASON_UNKNOWN:
      return "unknown";
    case KVM_MSR_EXIT_REASON_FILTER:
      return "filtered";
    default:
      return "unknown reason";
  }
}

const char* MpStateName(uint32_t mp_state) { return NameOr(kMpStates, mp_state, "unknown state"); }

}  // namespace sipi
