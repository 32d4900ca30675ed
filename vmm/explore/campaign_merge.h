// The states of a campaign's shards, summed up.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "vmm/explore/campaign.h"

namespace sipi {

struct StateFile {
  std::string path;
  CampaignState state;
};

struct Merged {
  std::string text;       // a table of what was done and found, and of what is missing
  bool complete = false;  // all shards are there, and each has done all of its schedules
  bool failing = false;   // some schedule failed
};

// Sums up `files`, at least one. Errors: InvalidArgument naming the files: one is of another
// campaign than the first, or a shard is there twice.
absl::StatusOr<Merged> MergeStates(const std::vector<StateFile>& files);

}  // namespace sipi
