// Which cpuhp steps can fail (Fault::kFailStep). Freestanding.
#pragma once

#include "guest/abi/cpuhp_state.h"

namespace sipi::abi {

// False for the STARTING section and the first state of the ONLINE section: nobody could undo what
// the CPU has done by then. guest/kernel/steps.cc checks its table against this.
constexpr bool StepCanFail(CpuhpState state) {
  const bool starting = state >= CpuhpState::kApOffline && state <= CpuhpState::kApOnline;
  return !starting && state != CpuhpState::kApOnlineIdle;
}

}  // namespace sipi::abi
