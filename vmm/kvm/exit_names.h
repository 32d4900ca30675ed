// Names of what KVM reports by number (linux/kvm.h), for people.
#pragma once

#include <cstdint>

namespace sipi {

// "KVM_EXIT_HLT", ... ; "unknown exit reason" for a number that this program does not know (print
// the number beside it).
const char* ExitReasonName(uint32_t exit_reason);

// kvm_run.internal.suberror: "emulation failure", "simultaneous exceptions", ...
const char* InternalErrorName(uint32_t suberror);

// kvm_run.msr.reason: "unknown", "invalid", "filtered".
const char* MsrExitReasonName(uint32_t reason);

// "RUNNABLE", "UNINITIALIZED", "INIT_RECEIVED", "HALTED", "SIPI_RECEIVED", ...
const char* MpStateName(uint32_t mp_state);

}  // namespace sipi
