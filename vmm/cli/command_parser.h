// What CLI11 fills, and the commands and flags it knows.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>

#include "vmm/cli/command_line.h"
#include "vmm/cli/explore_flags.h"
#include "vmm/cli/raw_flags.h"
#include "vmm/cli/service_flags.h"

namespace sipi {

inline constexpr char kDefaultStrategies[] =
    "serial,kick,kick+wait,kick+reuse,primary-first,full,full+reuse,broadcast,tree";

struct RawCompare {
  std::string strategies = kDefaultStrategies;
  std::string runs = "5";
  std::string baseline = "serial";
  std::string runs_dir;
};

// Everything CLI11 fills. Its options hold references, so this never moves.
struct Parser {
  CLI::App app{
      "sipi boots many x86_64 vCPUs, on KVM or simulated, and shows where every microsecond of SMP "
      "bring-up goes.",
      "sipi"};
  RawFlags flags;
  RawCompare compare;
  std::string params_file;
  CLI::App* run = nullptr;
  CLI::App* compare_app = nullptr;
  CLI::App* doctor = nullptr;
  CLI::App* params = nullptr;
  CLI::App* bench = nullptr;
  CLI::App* explore = nullptr;
  RawServices services;
  CLI::App* smt = nullptr;
  CLI::App* rcu = nullptr;
  RawExplore raw_explore;
  std::string bench_what;
  std::string bench_runs = "5";
};

// The commands after `rcu`.
struct RcuVerb {
  const char* name;
  Verb verb;
  ServiceUse use;
  const char* what;
  const char* example;
};
std::span<const RcuVerb> RcuVerbs();

void BuildParser(Parser& p);

// The help of the command that was named before --help, or of the program.
std::string HelpText(const Parser& p);

}  // namespace sipi
