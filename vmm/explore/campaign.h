// A campaign: many seeds on all cores of the host. It can be stopped and resumed, and split over
// machines.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "vmm/explore/explore_case.h"

namespace sipi {

// What a campaign can be asked for, on the command line and by a file.
inline constexpr uint64_t kMaxSeed = ~uint64_t{0} / 2;  // and as many schedules
inline constexpr uint32_t kMaxShards = 1'000'000;
inline constexpr uint32_t kMinExploreCpus = 2;
inline constexpr uint32_t kMaxExploreCpus = 64;

struct CampaignPlan {
  ExploreSpace space;
  uint64_t first_seed = 1;
  uint64_t schedules = 100'000;  // of all shards together
  uint32_t shard = 1;            // this one, counted from 1
  uint32_t shards = 1;
  uint32_t jobs = 1;
  uint32_t max_failures = 1;  // new ones; then it ends
};

struct Failure {
  uint64_t seed = 0;
  std::string wrong;
};

// Which campaign this is: everything that its cases and their ends follow from.
struct CampaignIdentity {
  std::string version;  // of sipi
  std::string cases;    // what its kernel makes of a few of the cases (CasesFingerprint)
  ExploreSpace space;
  uint64_t first_seed = 1;
  uint64_t schedules = 0;
  uint32_t shards = 1;
};

// What has been done: written to a file, read from it to go on, merged with other shards'
// (campaign_state.h).
struct CampaignState {
  CampaignIdentity campaign;
  uint32_t shard = 1;
  uint64_t done = 0;              // of this shard's schedules, from its first on
  std::vector<Failure> failures;  // by seed, each once; some may lie behind `done`
};

// Schedules that a shard has to do: seeds first_seed + i with i % shards == shard - 1.
uint64_t SchedulesOfShard(uint64_t schedules, uint32_t shard, uint32_t shards);

// Runs what is left of the plan, from state.done on; updates `state`. Returns when all is done,
// when `max_failures` new ones have been found and all that is before the last of them has been
// looked at, or soon after `*stop` is set. However it ends, the next call with its state goes on
// behind it: no failure is lost, none is counted twice. `progress` is called about every second on
// the calling thread, with what can be gone on from at that moment; may be null. Errors: those of
// RunWorkers and Explorer; `state` holds then what was done before.
absl::Status RunCampaign(const CampaignPlan& plan, const std::atomic<bool>& stop,
                         const std::function<void(const CampaignState&)>& progress,
                         CampaignState& state);

}  // namespace sipi
