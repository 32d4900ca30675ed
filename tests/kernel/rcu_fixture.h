// What the tests of RCU on simulated CPUs share.
#pragma once

#include <string>

#include "guest/kernel/rcu/internal.h"
#include "guest/kernel/rcu/rcu.h"
#include "tests/kernel/kernel_machine.h"

namespace sipi {

struct RcuMode {
  const char* name;
  abi::RcuFlavour flavour;
  abi::Preemption preemption;
};
inline constexpr RcuMode kRcuModes[] = {
    {"Preemptible", abi::RcuFlavour::kPreemptible, abi::Preemption::kFull},
    {"NonPreemptible", abi::RcuFlavour::kNonPreemptible, abi::Preemption::kNone},
    {"NonPreemptibleInFull", abi::RcuFlavour::kNonPreemptible, abi::Preemption::kFull},
};
inline std::string NameOfMode(const testing::TestParamInfo<RcuMode>& info) {
  return info.param.name;
}

inline KernelOptions RcuOptions(uint32_t cpus, const RcuMode& mode) {
  KernelOptions options;
  options.cpus = cpus;
  options.kernel.rcu_flavour = mode.flavour;
  options.kernel.preemption = mode.preemption;
  return options;
}

}  // namespace sipi
