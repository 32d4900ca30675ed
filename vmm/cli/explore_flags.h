// The flags of `sipi explore`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "vmm/explore/campaign.h"

namespace CLI {
class App;
}

namespace sipi {

// As typed.
struct RawExplore {
  std::string schedules = "100000";
  std::string seed = "1";
  std::string cpus;
  std::string strategy;
  std::string faults = "on";
  std::string shard = "1/1";
  std::string jobs;
  std::string max_failures = "1";
  std::string state;
  std::string replay;
  std::string merge;
  bool quiet = false;
};

struct ExploreFlags {
  CampaignPlan plan;
  std::string state_file;          // empty: none
  std::optional<uint64_t> replay;  // this seed alone
  std::string merge;               // files, by commas
  bool quiet = false;
};

// Adds the flags to `app`, filling `raw`, which must outlive it.
void AddExploreFlags(CLI::App& app, RawExplore& raw);

// Errors: InvalidArgument naming flag and remedy.
absl::StatusOr<ExploreFlags> CheckExplore(const RawExplore& raw);

}  // namespace sipi
