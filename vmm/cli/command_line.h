// The command line of `sipi`, parsed and checked, without running anything: tests call it without a
// process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "guest/sequence/strategy.h"
#include "vmm/cli/explore_flags.h"
#include "vmm/cli/raw_flags.h"
#include "vmm/cli/run_flags.h"
#include "vmm/cli/service_flags.h"
#include "vmm/machine/run_config.h"

namespace sipi {

enum class Verb {
  kHelp,        // print `help` and end
  kRun,         // one run, its report
  kCompare,     // several strategies, several runs each
  kDoctor,      // whether and how KVM can be used here
  kPublished,   // published figures beside simulated ones
  kExplore,     // many schedules and faults, in search of bugs
  kParams,      // write the guest's boot parameters, for another VMM
  kSmt,         // SMT off and on by each approach
  kRcuScale,    // how long grace periods take
  kRcuRef,      // what readers cost
  kRcuCallRcu,  // call_rcu workers
  kRcuTorture,  // whether RCU holds what it promises
};

struct CompareOptions {
  std::vector<sequence::Strategy> strategies;  // the baseline among them
  uint32_t runs = 5;                           // of each
  std::string baseline;                        // canonical name of one of `strategies`
  std::string runs_dir;                        // empty: do not keep the runs
};

struct CommandLine {
  Verb verb = Verb::kHelp;
  std::string help;
  RawFlags flags;          // outputs (json, trace, serial, quiet) and kvm_device are read from here
  RawServices services;    // outputs of the scenarios' commands are read from here
  CheckedConfig checked;   // run, compare, params, smt, rcu
  CompareOptions compare;  // compare
  std::string params_file;                   // params
  ExploreFlags explore;                      // explore
  uint32_t published_runs = 5;               // published: seeds per row
  std::vector<abi::WorkerPinning> pinnings;  // rcu callrcu: one run each
};

// `args` without the program's name. `limits` is asked for at most once, and only by verbs that
// boot a machine: it opens KVM. Errors (exit status 2) are one line naming flag and remedy.
absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& args,
                                             CpuLimits (*limits)(const std::string& kvm_device));

}  // namespace sipi
