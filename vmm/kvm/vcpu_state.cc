// The plain get and set ioctls of a vCPU's state.

#include <cerrno>

#include "vmm/kvm/vcpu.h"

namespace sipi {

// Defines Get<name> and Set<name> for a struct that KVM copies whole.
#define SIPI_VCPU_STATE(name, type, get_request, set_request) \
  absl::StatusOr<type> Vcpu::Get##name() const {              \
    type value = {};                                          \
    if (fd_.Call(get_request, &value) < 0) {                  \
      return Failed(#get_request);                            \
    }                                                         \
    return value;                                             \
  }                                                           \
  absl::Status Vcpu::Set##name(const type& value) {           \
    type copy = value;                                        \
    if (fd_.Call(set_request, &copy) < 0) {                   \
      return Failed(#set_request);                            \
    }                                                         \
    return absl::OkStatus();                                  \
  }

SIPI_VCPU_STATE(Regs, kvm_regs, KVM_GET_REGS, KVM_SET_REGS)
SIPI_VCPU_STATE(Sregs, kvm_sregs, KVM_GET_SREGS, KVM_SET_SREGS)
SIPI_VCPU_STATE(Fpu, kvm_fpu, KVM_GET_FPU, KVM_SET_FPU)
SIPI_VCPU_STATE(DebugRegs, kvm_debugregs, KVM_GET_DEBUGREGS, KVM_SET_DEBUGREGS)
SIPI_VCPU_STATE(Xcrs, kvm_xcrs, KVM_GET_XCRS, KVM_SET_XCRS)
SIPI_VCPU_STATE(Events, kvm_vcpu_events, KVM_GET_VCPU_EVENTS, KVM_SET_VCPU_EVENTS)
SIPI_VCPU_STATE(Lapic, kvm_lapic_state, KVM_GET_LAPIC, KVM_SET_LAPIC)

#undef SIPI_VCPU_STATE

absl::StatusOr<uint32_t> Vcpu::GetMpState() const {
  kvm_mp_state state = {};
  if (fd_.Call(KVM_GET_MP_STATE, &state) < 0) return Failed("KVM_GET_MP_STATE");
  return state.mp_state;
}

absl::Status Vcpu::SetMpState(uint32_t mp_state) {
  kvm_mp_state state = {.mp_state = mp_state};
  if (fd_.Call(KVM_SET_MP_STATE, &state) < 0) return Failed("KVM_SET_MP_STATE");
  return absl::OkStatus();
}

}  // namespace sipi
