#include "vmm/explore/campaign_merge.h"

#include <cstdint>
#include <map>

#include "absl/strings/str_cat.h"
#include "vmm/base/quoted.h"
#include "vmm/base/status_macros.h"
#include "vmm/explore/campaign_state.h"

namespace sipi {
namespace {

using ByShard = std::map<uint32_t, const StateFile*>;

absl::StatusOr<ByShard> SortedByShard(const std::vector<StateFile>& files) {
  ByShard shards;
  const StateFile& first = files.front();
  for (const StateFile& file : files) {
    const std::string difference =
        Difference(file.state.campaign, absl::StrCat("in ", file.path), first.state.campaign,
                   absl::StrCat("in ", first.path));
    if (!difference.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(file.path, " is of another campaign than ",
                                                     first.path, ": ", difference,
                                                     "; give the shards of one campaign"));
    }
    const auto [there, is_new] = shards.try_emplace(file.state.shard, &file);
    if (is_new) continue;
    return absl::InvalidArgumentError(absl::StrCat(file.path, " is shard ", file.state.shard, "/",
                                                   file.state.campaign.shards, ", and so is ",
                                                   there->second->path, "; give each shard once"));
  }
  return shards;
}

// "missing: shards 2, 5-9": those of 1 to `count` that are not there.
std::string MissingShards(const ByShard& shards, uint32_t count) {
  std::string text;
  uint32_t next = 1;
  const auto add_gap = [&](uint32_t end) {  // next .. end - 1
    if (next >= end) return;
    absl::StrAppend(&text, text.empty() ? "  missing: shard " : ", ", next);
    if (end - next > 1) absl::StrAppend(&text, "-", end - 1);
  };
  for (const auto& [shard, file] : shards) {
    add_gap(shard);
    next = shard + 1;
  }
  add_gap(count + 1);
  return text.empty() ? text : absl::StrCat(text, " of ", count, "\n");
}

}  // namespace

absl::StatusOr<Merged> MergeStates(const std::vector<StateFile>& files) {
  ASSIGN_OR_RETURN(const ByShard shards, SortedByShard(files));
  const CampaignIdentity& campaign = files.front().state.campaign;
  uint64_t done = 0;
  size_t failures = 0;
  std::string unfinished;
  std::string list;
  for (const auto& [shard, file] : shards) {
    const CampaignState& state = file->state;
    const uint64_t wanted = SchedulesOfShard(campaign.schedules, shard, campaign.shards);
    done += state.done;
    failures += state.failures.size();
    if (state.done != wanted) {
      absl::StrAppend(&unfinished, "  unfinished: shard ", shard, " (", file->path, "), ",
                      state.done, " of ", wanted, " schedules done\n");
    }
    for (const Failure& failure : state.failures) {
      absl::StrAppend(&list, "  seed ", failure.seed, ": ", Printable(failure.wrong), "\n");
    }
  }
  Merged merged;
  merged.complete = shards.size() == campaign.shards && done == campaign.schedules;
  merged.failing = failures != 0;
  merged.text = absl::StrCat(shards.size(), " of ", campaign.shards, " shards, ", done, " of ",
                             campaign.schedules, " schedules done, ", failures, " failures\n",
                             MissingShards(shards, campaign.shards), unfinished, list);
  return merged;
}

}  // namespace sipi
