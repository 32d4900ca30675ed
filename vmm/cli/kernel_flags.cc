#include "vmm/cli/kernel_flags.h"

#include "vmm/base/status_macros.h"
#include "vmm/cli/flag_values.h"

namespace sipi {
namespace {

absl::Status SetBootGracePeriods(const RawServices& raw, abi::KernelKnobs& knobs) {
  enum class Kind { kNone, kNormal, kExpedited };
  Kind kind = Kind::kNone;
  RETURN_IF_ERROR(SetChoice<Kind>(
      "--boot-gp", raw.boot_gp,
      {{"none", Kind::kNone}, {"normal", Kind::kNormal}, {"expedited", Kind::kExpedited}}, kind));
  knobs.boot_grace_periods = kind == Kind::kNone ? 0 : 1;
  knobs.boot_expedited = kind == Kind::kNormal ? 0 : 1;
  return absl::OkStatus();
}

absl::Status SetRcuKnobs(const RawServices& raw, abi::KernelKnobs& knobs) {
  RETURN_IF_ERROR(
      SetChoice<abi::RcuFlavour>("--rcu-flavour", raw.rcu_flavour,
                                 {{"preemptible", abi::RcuFlavour::kPreemptible},
                                  {"non-preemptible", abi::RcuFlavour::kNonPreemptible}},
                                 knobs.rcu_flavour));
  RETURN_IF_ERROR(SetNumber("--rcu-fanout", raw.rcu_fanout, 2, 64, knobs.rcu_fanout));
  RETURN_IF_ERROR(
      SetNumber("--rcu-fanout-leaf", raw.rcu_fanout_leaf, 2, 64, knobs.rcu_fanout_leaf));
  RETURN_IF_ERROR(SetSwitch("--rcu-expedited", raw.rcu_expedited, knobs.rcu_expedited));
  RETURN_IF_ERROR(SetSwitch("--rcu-normal", raw.rcu_normal, knobs.rcu_normal));
  RETURN_IF_ERROR(
      SetSwitch("--rcu-wake-from-gp", raw.rcu_wake_from_gp, knobs.rcu_normal_wake_from_gp));
  RETURN_IF_ERROR(SetChoice<uint8_t>("--rcu-exp", raw.rcu_exp, {{"serial", 0}, {"parallel", 1}},
                                     knobs.rcu_exp_parallel));
  RETURN_IF_ERROR(SetNumber("--jiffies-till-first-fqs", raw.first_fqs, 0, 10'000,
                            knobs.jiffies_till_first_fqs));
  RETURN_IF_ERROR(
      SetNumber("--jiffies-till-next-fqs", raw.next_fqs, 1, 10'000, knobs.jiffies_till_next_fqs));
  return SetNumber("--rcu-stall-ms", raw.stall_ms, 10, 3'600'000, knobs.rcu_stall_ms);
}

}  // namespace

absl::Status SetKernelKnobs(const RawServices& raw, abi::KernelKnobs& knobs) {
  RETURN_IF_ERROR(SetNumber("--hz", raw.hz, 24, 10'000, knobs.hz));
  RETURN_IF_ERROR(SetChoice<abi::Preemption>("--preempt", raw.preempt,
                                             {{"none", abi::Preemption::kNone},
                                              {"voluntary", abi::Preemption::kVoluntary},
                                              {"full", abi::Preemption::kFull},
                                              {"lazy", abi::Preemption::kLazy}},
                                             knobs.preemption));
  RETURN_IF_ERROR(SetRcuKnobs(raw, knobs));
  RETURN_IF_ERROR(SetBootGracePeriods(raw, knobs));
  return SetChoice<abi::HotplugSteps>(
      "--hotplug-steps", raw.hotplug_steps,
      {{"x86", abi::HotplugSteps::kX86}, {"pseries", abi::HotplugSteps::kPseries}},
      knobs.hotplug_steps);
}

}  // namespace sipi
