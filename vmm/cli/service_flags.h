// Flags of the guest kernel beyond bring-up (scheduler, RCU, hotplug) and of the scenarios that use
// it. As raw_flags.h, text as typed first; then checked into a RunConfig.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "vmm/machine/run_config.h"

namespace CLI {
class App;
}

namespace sipi {

// Which command the flags stand at, or what it boots.
enum class ServiceUse { kRun, kSmt, kRcuScale, kRcuRef, kCallRcu, kTorture };

// Empty: not given.
struct RawServices {
  // The kernel's knobs.
  std::string hz;
  std::string preempt;
  std::string rcu_flavour;
  std::string rcu_fanout;
  std::string rcu_fanout_leaf;
  std::string rcu_expedited;
  std::string rcu_normal;
  std::string rcu_wake_from_gp;
  std::string rcu_exp;
  std::string boot_gp;
  std::string hotplug_steps;
  std::string first_fqs;
  std::string next_fqs;
  std::string stall_ms;
  // The scenarios'.
  std::string rounds;
  std::string hotplug_cpu;
  std::string approach;
  std::string to;
  std::string kernel_busy;
  std::string writers;
  std::string readers;
  std::string measurements;
  std::string callbacks;
  std::string pinning;
  std::string seconds;
  std::string onoff;
  bool expedited = false;
  bool async = false;
  bool durations = false;  // read by the command: print each measurement
};

// Adds the kernel's flags and those of `use` to `app`, filling `raw`, which must outlive it.
void AddServiceFlags(CLI::App& app, RawServices& raw, ServiceUse use);

// The knobs that a profile gives: its machine's kernel.
void SetProfileKernel(const Profile& profile, abi::KernelKnobs& knobs);

// Checks `raw` into config.kernel and config.scenario_knobs, and sets the scenario of `use` (kRun:
// the one that config has) and config.kernel.services: where the scenario needs them, or a flag of
// the kernel was given. `config` is otherwise complete; its time limit becomes larger where the
// scenario takes long, unless `time_limit_given`. Errors: InvalidArgument, naming flag and remedy.
absl::Status SetServices(const RawServices& raw, ServiceUse use, bool time_limit_given,
                         RunConfig& config);

// `sipi rcu callrcu`: the behaviours asked for, all three by default.
absl::StatusOr<std::vector<abi::WorkerPinning>> ParsePinnings(const std::string& text);

}  // namespace sipi
