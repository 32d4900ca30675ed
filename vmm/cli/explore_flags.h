// The flags of `sipi explore`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "vmm/explore/campaign.h"
#include "vmm/explore/exhaustive.h"

namespace CLI {
class App;
}

namespace sipi {

// As typed.
struct RawExplore {
  std::string schedule = "random";
  std::string schedules;
  std::string seed;
  std::string scenario = "smpboot";
  std::string cpus;
  std::string strategy;
  std::string preemptions;
  std::string meet_at;
  std::string store_buffer;
  std::string fault;
  std::string faults = "on";
  std::string retry;
  std::string shard = "1/1";
  std::string jobs;
  std::string max_failures = "1";
  std::string state;
  std::string replay;
  std::string save;
  std::string merge;
  bool quiet = false;
};

// --schedule=exhaustive.
struct ExhaustiveFlags {
  ExhaustivePlan plan;
  std::vector<bool> store_buffer;    // a walk for each
  std::vector<uint64_t> meetings;    // and for each of these (ExhaustivePlan::met_at)
  std::optional<ChoiceList> replay;  // this schedule alone
};

struct ExploreFlags {
  std::optional<ExhaustiveFlags> exhaustive;
  CampaignPlan plan;
  std::string state_file;          // empty: none
  std::optional<uint64_t> replay;  // this seed alone
  std::string replay_file;         // ... or the case saved there; empty: none
  std::string save_file;           // the first failing case, made small, goes there; empty: none
  std::string merge;               // files, by commas
  bool quiet = false;
};

// Adds the flags to `app`, filling `raw`, which must outlive it.
void AddExploreFlags(CLI::App& app, RawExplore& raw);

// Errors: InvalidArgument naming flag and remedy.
absl::StatusOr<ExploreFlags> CheckExplore(const RawExplore& raw);

}  // namespace sipi
