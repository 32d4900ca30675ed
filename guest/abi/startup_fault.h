// Which INITs and SIPIs a fault loses on their way to a CPU: one rule for the VMM's irqchip and for
// the simulator's fabric. The sender's side counts the SIPIs since the target's last INIT.
#pragma once

#include <cstdint>

#include "guest/abi/boot_params.h"

namespace sipi::abi {

// Whether `fault` concerns the CPU `target` at all, so that its SIPIs are to be counted.
constexpr bool Concerns(const FaultSpec& fault, uint32_t target) {
  return fault.kind != Fault::kNone && fault.cpu == target;
}

// Whether an INIT to `target` is lost.
constexpr bool LosesInit(const FaultSpec& fault, uint32_t target) {
  return Concerns(fault, target) && fault.kind == Fault::kLostInit;
}

// Whether a SIPI to `target` is lost; `index` of them have been sent since its last INIT.
constexpr bool LosesSipi(const FaultSpec& fault, uint32_t target, uint32_t index) {
  if (!Concerns(fault, target)) return false;
  switch (fault.kind) {
    case Fault::kNoStart:
    case Fault::kLostSipis:
      return true;
    case Fault::kLostSipi1:
      return index == 0;
    case Fault::kLostSipi2:
      return index == 1;
    default:
      return false;
  }
}

}  // namespace sipi::abi
