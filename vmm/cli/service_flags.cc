#include "vmm/cli/service_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <span>

#include "absl/strings/str_cat.h"
#include "vmm/base/status_macros.h"
#include "vmm/cli/flag_values.h"
#include "vmm/cli/kernel_flags.h"
#include "vmm/cli/time_limits.h"
#include "vmm/timeline/scenario_names.h"

namespace sipi {
namespace {

using R = RawServices;

struct ServiceFlag {
  const char* name;
  std::string R::*member;
  const char* value;
  const char* help;
};

constexpr ServiceFlag kKernelFlags[] = {
    {"--hz", &R::hz, "N", "jiffies per second, 24 to 10000 (default 250)"},
    {"--preempt", &R::preempt, "none|voluntary|full|lazy",
     "where a running thread can lose its CPU (default full)"},
    {"--rcu-flavour", &R::rcu_flavour, "preemptible|non-preemptible",
     "whether RCU readers can be preempted (default preemptible)"},
    {"--rcu-fanout", &R::rcu_fanout, "N",
     "children of an inner rcu_node, 2 to 64 (CONFIG_RCU_FANOUT; default 64)"},
    {"--rcu-fanout-leaf", &R::rcu_fanout_leaf, "N",
     "CPUs of a leaf, 2 to 64 (rcutree.rcu_fanout_leaf; default 16)"},
    {"--rcu-expedited", &R::rcu_expedited, "on|off",
     "all grace periods are expedited ones (rcupdate.rcu_expedited; default off)"},
    {"--rcu-normal", &R::rcu_normal, "on|off",
     "none is, whoever asks (rcupdate.rcu_normal; default off)"},
    {"--rcu-wake-from-gp", &R::rcu_wake_from_gp, "on|off",
     "normal grace periods wake their waiters directly, as Linux 7.2 and later do by default "
     "(rcutree.rcu_normal_wake_from_gp; default off)"},
    {"--rcu-exp", &R::rcu_exp, "serial|parallel",
     "expedited ones ask leaf after leaf, or one worker each (default parallel)"},
    {"--boot-gp", &R::boot_gp, "none|normal|expedited",
     "bring-up takes the hotplug lock for each CPU, as Linux does, with grace periods of that kind "
     "(default none)"},
    {"--hotplug-steps", &R::hotplug_steps, "x86|pseries",
     "which steps of hotplug wait for grace periods (default x86)"},
    {"--jiffies-till-first-fqs", &R::first_fqs, "N",
     "until the first scan for quiescent CPUs (rcutree; default by HZ and CPUs)"},
    {"--jiffies-till-next-fqs", &R::next_fqs, "N", "between the next (likewise)"},
    {"--rcu-stall-ms", &R::stall_ms, "MS",
     "a grace period of that age has stalled, and says who holds it up (default 21000)"},
};

constexpr ServiceFlag kRunFlags[] = {
    {"--rounds", &R::rounds, "N", "hotplug: how often each CPU goes off and on (default 1)"},
    {"--hotplug-cpu", &R::hotplug_cpu, "CPU", "hotplug: only this one (default: all in turn)"},
};
constexpr ServiceFlag kSmtFlags[] = {
    {"--approach", &R::approach, "all|NAME,...",
     "none, expedite, per-cpu, hotplug-calls, write-lock, rcu-sync, wake-from-gp (default all)"},
    {"--to", &R::to, "off|N", "threads per core that stay, and then back on (default off: 1)"},
    {"--rounds", &R::rounds, "N", "how often each approach switches off and on (default 1)"},
    {"--kernel-busy", &R::kernel_busy, "N",
     "CPUs that a kernel thread keeps busy meanwhile, yielding by cond_resched() alone, so that "
     "grace periods wait for RCU's patience (default: the profile's, 0)"},
};
constexpr ServiceFlag kScaleFlags[] = {
    {"--writers", &R::writers, "N", "CPUs that time grace periods (nwriters; default: all)"},
    {"--readers", &R::readers, "N",
     "threads that read all the time (nreaders; default none; 64 per CPU at most)"},
    {"--measurements", &R::measurements, "N", "of each writer at least, 1 to 10000 (default 100)"},
};
constexpr ServiceFlag kRefFlags[] = {
    {"--readers", &R::readers, "N",
     "threads that read (nreaders; default: half of the CPUs and a quarter of them)"},
    {"--rounds", &R::rounds, "N", "points to measure (nruns; default 30)"},
};
constexpr ServiceFlag kCallRcuFlags[] = {
    {"--callbacks", &R::callbacks, "N",
     "that each CPU queues as fast as it can, in half of the time at most; up to 1000000 (default "
     "10000)"},
    {"--seconds", &R::seconds, "N",
     "how long each behaviour is watched, up to 86400 (default 10): the rest of it with a trickle "
     "of callbacks, so that lazy workers get to bind themselves (after 256 loops of 10 ms and a "
     "grace period)"},
    {"--pinning", &R::pinning, "all|NAME,...",
     "when a worker binds itself to its CPU: lazy, at-start, first-work (default all; with --trace "
     "one)"},
};
constexpr ServiceFlag kTortureFlags[] = {
    {"--seconds", &R::seconds, "N", "how long, up to 86400 (default 60)"},
    {"--readers", &R::readers, "N", "threads that read (nreaders; default: the CPUs less one)"},
    {"--writers", &R::writers, "N", "that only make grace periods (nfakewriters; default 4)"},
    {"--onoff", &R::onoff, "on|off", "CPUs go off and on at random (default on)"},
};

std::span<const ServiceFlag> FlagsOf(ServiceUse use) {
  switch (use) {
    case ServiceUse::kRun:
      return kRunFlags;
    case ServiceUse::kSmt:
      return kSmtFlags;
    case ServiceUse::kRcuScale:
      return kScaleFlags;
    case ServiceUse::kRcuRef:
      return kRefFlags;
    case ServiceUse::kCallRcu:
      return kCallRcuFlags;
    case ServiceUse::kTorture:
      return kTortureFlags;
  }
  return {};
}

void AddTable(CLI::App& app, RawServices& raw, std::span<const ServiceFlag> table,
              const char* group) {
  for (const ServiceFlag& flag : table) {
    app.add_option(flag.name, raw.*flag.member, flag.help)
        ->type_name(flag.value)
        ->group(group)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
}

bool AnyGiven(const RawServices& raw, std::span<const ServiceFlag> table) {
  for (const ServiceFlag& flag : table) {
    if (!(raw.*flag.member).empty()) return true;
  }
  return false;
}

constexpr uint64_t kMaxRounds = 1'000'000;

absl::Status SetHotplug(const RawServices& raw, RunConfig& config) {
  if (config.scenario != abi::Scenario::kHotplug) {
    for (const ServiceFlag& flag : kRunFlags) {
      if ((raw.*flag.member).empty()) continue;
      return FlagError(flag.name, "is for CPU hotplug; add --scenario=hotplug, or leave it out");
    }
    return absl::OkStatus();
  }
  if (config.order.empty()) {
    return FlagError("--scenario",
                     config.cpus < 2
                         ? "hotplug needs a CPU beside the boot CPU; give --cpus=2 or more"
                         : "hotplug needs a CPU beside the boot CPU, and --smt=off leaves all of "
                           "them out; leave it out");
  }
  abi::ScenarioKnobs& knobs = config.scenario_knobs;
  RETURN_IF_ERROR(SetNumber("--rounds", raw.rounds, 1, kMaxRounds, knobs.rounds));
  if (raw.hotplug_cpu == "0") {
    return FlagError("--hotplug-cpu", absl::StrCat("CPU 0 is the boot CPU, which stays; give 1 to ",
                                                   config.cpus - 1));
  }
  RETURN_IF_ERROR(
      SetNumber("--hotplug-cpu", raw.hotplug_cpu, 1, config.cpus - 1, knobs.hotplug_cpu));
  const std::vector<uint32_t>& order = config.order;
  if (knobs.hotplug_cpu != 0 &&
      std::find(order.begin(), order.end(), knobs.hotplug_cpu) == order.end()) {
    return FlagError("--hotplug-cpu", absl::StrCat("CPU ", knobs.hotplug_cpu,
                                                   " is a sibling, which --smt=off leaves out; "
                                                   "give a first thread, e.g. ",
                                                   order.front()));
  }
  return absl::OkStatus();
}

absl::Status SetApproaches(const std::string& text, uint32_t& approaches) {
  approaches = (1u << abi::kSmtApproaches) - 1;
  if (text.empty() || text == "all") return absl::OkStatus();
  approaches = 0;
  Choices<uint32_t> choices;
  for (uint32_t i = 0; i < abi::kSmtApproaches; ++i) {
    choices.emplace_back(Name(static_cast<abi::SmtApproach>(i)), 1u << i);
  }
  for (const std::string& name : SplitAt(text, ',')) {
    ASSIGN_OR_RETURN(const uint32_t bit, ParseChoice<uint32_t>("--approach", name, choices));
    approaches |= bit;
  }
  return absl::OkStatus();
}

// Only primary threads are sure to stay, and the boot CPU does the switching.
absl::Status SetKernelBusy(const RawServices& raw, RunConfig& config) {
  uint32_t primaries = 0;
  for (const CpuPlace& place : config.topology.places) primaries += place.thread == 0 ? 1u : 0u;
  uint32_t& busy = config.scenario_knobs.kernel_busy;
  busy = std::min(config.profile.kernel_busy, primaries - 1);
  return SetNumber("--kernel-busy", raw.kernel_busy, 0, primaries - 1, busy);
}

absl::Status SetSmt(const RawServices& raw, RunConfig& config) {
  abi::ScenarioKnobs& knobs = config.scenario_knobs;
  if (!config.smt) {
    return FlagError("--smt",
                     "off leaves out the siblings that this command switches off and on; leave it "
                     "out");
  }
  RETURN_IF_ERROR(SetKernelBusy(raw, config));
  RETURN_IF_ERROR(SetApproaches(raw.approach, knobs.approaches));
  RETURN_IF_ERROR(SetNumber("--rounds", raw.rounds, 1, kMaxRounds, knobs.rounds));
  uint32_t most = 1;
  for (const CpuPlace& place : config.topology.places) most = std::max(most, place.thread + 1);
  if (most == 1) {
    return FlagError("--topology",
                     "no core has a second thread, so there is nothing to switch; give e.g. "
                     "--topology=threads=2");
  }
  if (raw.to == "on") {
    return FlagError("--to",
                     "'on' is where each round begins and ends; give off, or how many "
                     "threads per core stay");
  }
  knobs.smt_threads = 1;
  if (raw.to == "off") return absl::OkStatus();
  return SetNumber("--to", raw.to, 1, most - 1, knobs.smt_threads);
}

// Threads of a kind: more share each CPU in vain, and their stacks have to fit into a guest
// (NeedsOf). A machine with more CPUs may have one on each.
uint64_t MostThreads(const RunConfig& config) {
  constexpr uint64_t kPerCpu = 64;
  constexpr uint64_t kInAll = 4096;
  const uint64_t cpus = config.cpus;
  return std::max(cpus, std::min(kPerCpu * cpus, kInAll));
}

// But for those that --smt=off leaves out.
uint32_t WantedCpus(const RunConfig& config) {
  return static_cast<uint32_t>(config.order.size()) + 1;
}

absl::Status SetWriters(const RawServices& raw, uint64_t max, RunConfig& config) {
  abi::ScenarioKnobs& knobs = config.scenario_knobs;
  RETURN_IF_ERROR(SetNumber("--writers", raw.writers, 1, max, knobs.writers));
  return SetNumber("--readers", raw.readers, 1, MostThreads(config), knobs.readers);
}

absl::Status SetSeconds(const RawServices& raw, uint32_t otherwise, abi::ScenarioKnobs& knobs) {
  uint32_t seconds = otherwise;
  RETURN_IF_ERROR(SetNumber("--seconds", raw.seconds, 1, 86'400, seconds));
  knobs.duration_ms = seconds * 1000;
  return absl::OkStatus();
}

absl::Status SetTorture(const RawServices& raw, RunConfig& config) {
  abi::ScenarioKnobs& knobs = config.scenario_knobs;
  RETURN_IF_ERROR(SetSeconds(raw, 60, knobs));
  RETURN_IF_ERROR(SetSwitch("--onoff", raw.onoff, knobs.onoff));
  if (config.order.empty()) {
    if (raw.onoff == "on") {
      return FlagError("--onoff", config.cpus < 2
                                      ? "one CPU cannot go off; give --cpus=2"
                                      : "one CPU cannot go off, and --smt=off leaves all others "
                                        "out; leave it out");
    }
    knobs.onoff = 0;
  }
  RETURN_IF_ERROR(SetWriters(raw, MostThreads(config), config));
  knobs.readers = abi::TortureReaders(knobs.readers, WantedCpus(config));
  knobs.writers = abi::TortureFakeWriters(knobs.writers);
  return absl::OkStatus();
}

// What `use` asks for, but for what all of them have.
absl::Status SetScenarioKnobs(const RawServices& raw, ServiceUse use, RunConfig& config) {
  abi::ScenarioKnobs& knobs = config.scenario_knobs;
  switch (use) {
    case ServiceUse::kRun:
      return SetHotplug(raw, config);
    case ServiceUse::kSmt:
      config.scenario = abi::Scenario::kSmt;
      return SetSmt(raw, config);
    case ServiceUse::kRcuScale:
      config.scenario = abi::Scenario::kRcuScale;
      knobs.expedited = raw.expedited ? 1 : 0;
      knobs.async = raw.async ? 1 : 0;
      if (raw.expedited && raw.async) {
        return FlagError("--async", "call_rcu has no expedited form; give one of the two");
      }
      RETURN_IF_ERROR(SetNumber("--measurements", raw.measurements, 1, 10'000, knobs.measurements));
      RETURN_IF_ERROR(SetWriters(raw, WantedCpus(config), config));
      knobs.writers = abi::WritersOf(knobs.writers, WantedCpus(config));
      return absl::OkStatus();
    case ServiceUse::kRcuRef:
      config.scenario = abi::Scenario::kRefScale;
      knobs.rounds = 30;
      RETURN_IF_ERROR(SetNumber("--rounds", raw.rounds, 1, 1'000, knobs.rounds));
      RETURN_IF_ERROR(SetWriters(raw, config.cpus, config));
      knobs.readers = abi::RefReaders(knobs.readers, WantedCpus(config));
      return absl::OkStatus();
    case ServiceUse::kCallRcu:
      config.scenario = abi::Scenario::kCallRcu;
      knobs.measurements = 10'000;
      knobs.writers = abi::WritersOf(0, WantedCpus(config));
      RETURN_IF_ERROR(SetSeconds(raw, 10, knobs));
      knobs.queue_ms = knobs.duration_ms / 2;
      return SetNumber("--callbacks", raw.callbacks, 1, 1'000'000, knobs.measurements);
    case ServiceUse::kTorture:
      config.scenario = abi::Scenario::kTorture;
      return SetTorture(raw, config);
  }
  return absl::OkStatus();
}

}  // namespace

void SetProfileKernel(const Profile& profile, abi::KernelKnobs& knobs) {
  knobs.hz = std::max(profile.tick_hz, 24u);
  knobs.hotplug_steps = profile.hotplug_steps;
  knobs.preemption = profile.preemption;
  knobs.rcu_flavour = profile.rcu_flavour;
}

void AddServiceFlags(CLI::App& app, RawServices& raw, ServiceUse use) {
  AddTable(app, raw, kKernelFlags, "Kernel");
  AddTable(app, raw, FlagsOf(use), use == ServiceUse::kRun ? "Hotplug" : "This command");
  if (CLI::Option* limit = app.get_option_no_throw("--time-limit-s")) {
    limit->description(TimeLimitHelp(use));
  }
  if (use != ServiceUse::kRcuScale) return;
  app.add_flag("--expedited", raw.expedited, "time expedited grace periods (gp_exp)");
  app.add_flag("--async", raw.async,
               "time call_rcu(), at most 1000 callbacks of a writer in flight (gp_async)");
  app.add_flag("--durations", raw.durations, "print each measurement");
  for (const char* name : {"--expedited", "--async", "--durations"}) {
    app.get_option(name)->group("Switches")->disable_flag_override();
  }
}

absl::Status SetServices(const RawServices& raw, ServiceUse use, bool time_limit_given,
                         RunConfig& config) {
  // The profile's kernel, unless a flag says otherwise.
  SetProfileKernel(config.profile, config.kernel);
  RETURN_IF_ERROR(SetKernelKnobs(raw, config.kernel));
  config.scenario_knobs.seed = config.seed;
  RETURN_IF_ERROR(SetScenarioKnobs(raw, use, config));
  const bool needs = config.scenario >= abi::Scenario::kHotplug;
  config.kernel.services = needs || AnyGiven(raw, kKernelFlags) ? 1 : 0;
  if (needs && !time_limit_given) config.time_limit_ms = ServicesTimeLimitMs(config);
  if (config.kernel.services == 0) return absl::OkStatus();
  if (config.payload) {
    return FlagError("--payload",
                     "the flags of sipi's own kernel do nothing to it; leave them out");
  }
  if (config.driver == abi::Driver::kHost) {
    return FlagError("--driver", "the kernel's services need the guest to sequence; leave it out");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<abi::WorkerPinning>> ParsePinnings(const std::string& text) {
  using abi::WorkerPinning;
  const std::vector<WorkerPinning> all = {WorkerPinning::kLazy, WorkerPinning::kAtStart,
                                          WorkerPinning::kAtFirstWork};
  if (text.empty() || text == "all") return all;
  Choices<WorkerPinning> choices;
  for (const WorkerPinning pinning : all) choices.emplace_back(Name(pinning), pinning);
  std::vector<WorkerPinning> pinnings;
  for (const std::string& name : SplitAt(text, ',')) {
    ASSIGN_OR_RETURN(const WorkerPinning pinning,
                     ParseChoice<WorkerPinning>("--pinning", name, choices));
    pinnings.push_back(pinning);
  }
  return pinnings;
}

}  // namespace sipi
