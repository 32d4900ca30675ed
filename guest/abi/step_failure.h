// Which cpuhp steps there are and can fail (Fault::kFailStep). Freestanding.
#pragma once

#include "guest/abi/cpuhp_state.h"
#include "guest/abi/scenario.h"

namespace sipi::abi {

// False for the STARTING section and the first state of the ONLINE section: nobody could undo what
// the CPU has done by then. guest/kernel/steps.cc checks its table against this.
constexpr bool StepCanFail(CpuhpState state) {
  const bool starting = state >= CpuhpState::kApOffline && state <= CpuhpState::kApOnline;
  return !starting && state != CpuhpState::kApOnlineIdle;
}

// Whether the table of such a kernel has the step at all. Those that cannot fail count as had.
constexpr bool HasStep(CpuhpState state, bool services, HotplugSteps steps) {
  switch (state) {
    case CpuhpState::kCpuidleDead:
    case CpuhpState::kApOnlineDyn:
      return services && steps == HotplugSteps::kPseries;
    case CpuhpState::kRcutreePrep:
    case CpuhpState::kTeardownCpu:
    case CpuhpState::kApRcutreeOnline:
      return services;
    default:
      return true;
  }
}

}  // namespace sipi::abi
