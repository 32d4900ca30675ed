#include "vmm/explore/campaign.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "vmm/explore/explorer.h"
#include "vmm/explore/workers.h"

namespace sipi {
namespace {

constexpr uint64_t kChunk = 512;  // schedules that a thread takes at once

// Chunks go out in order and come back in any; `done` is what is complete from the first on. A
// chunk that is cut short counts as far as it went. A failure behind that stays known, and its seed
// is not run again.
class Work {
 public:
  Work(const CampaignPlan& plan, const std::atomic<bool>& stop, CampaignState& state)
      : plan_(plan),
        stop_(stop),
        state_(state),
        total_(SchedulesOfShard(plan.schedules, plan.shard, plan.shards)),
        next_(state.done) {
    for (const Failure& failure : state.failures) known_.push_back(failure.seed);
    std::sort(known_.begin(), known_.end());
  }

  absl::Status Thread() {
    Explorer explorer;
    uint64_t begin = 0;
    uint64_t end = 0;
    while (Take(&begin, &end)) {
      uint64_t at = begin;
      while (at < end && !over(at) && Look(explorer, at)) ++at;
      Finish(begin, at);
      if (!explorer.host_error().ok()) return explorer.host_error();
    }
    return absl::OkStatus();
  }

  // What is done by now. The threads go on.
  CampaignState Now() {
    const std::lock_guard lock(mutex_);
    return state_;
  }
  std::atomic<bool>& give_up() { return give_up_; }

 private:
  uint64_t SeedOf(uint64_t index) const {
    return plan_.first_seed + index * plan_.shards + plan_.shard - 1;
  }
  bool over(uint64_t index) const {
    return stop_.load(std::memory_order_relaxed) || give_up_.load(std::memory_order_relaxed) ||
           index >= end_.load(std::memory_order_relaxed);
  }

  // False: the host had no room to run it.
  bool Look(Explorer& explorer, uint64_t index) {
    const uint64_t seed = SeedOf(index);
    if (std::binary_search(known_.begin(), known_.end(), seed)) return true;
    std::string wrong = explorer.Run(CaseOf(seed, plan_.space));
    if (!explorer.host_error().ok()) return false;
    if (!wrong.empty()) Fail(index, {seed, std::move(wrong)});
    return true;
  }

  bool Take(uint64_t* begin, uint64_t* end) {
    const std::lock_guard lock(mutex_);
    if (next_ >= total_ || over(next_)) return false;
    *begin = next_;
    *end = std::min(next_ + kChunk, total_);
    next_ = *end;
    return true;
  }

  void Finish(uint64_t begin, uint64_t end) {
    const std::lock_guard lock(mutex_);
    finished_.emplace_back(begin, end);
    std::sort(finished_.begin(), finished_.end());
    size_t used = 0;
    while (used < finished_.size() && finished_[used].first == state_.done) {
      state_.done = finished_[used++].second;
    }
    finished_.erase(finished_.begin(), finished_.begin() + static_cast<ptrdiff_t>(used));
  }

  // With enough of them the campaign ends behind the last one: the other threads still look at what
  // is before it, a few chunks at most.
  void Fail(uint64_t index, Failure failure) {
    const std::lock_guard lock(mutex_);
    state_.failures.push_back(std::move(failure));
    last_failing_ = std::max(last_failing_, index);
    if (++found_ == plan_.max_failures) end_.store(last_failing_ + 1, std::memory_order_relaxed);
  }

  const CampaignPlan& plan_;
  const std::atomic<bool>& stop_;
  std::vector<uint64_t> known_;              // seeds that have failed before, sorted
  std::atomic<bool> give_up_{false};         // the host has no room
  std::atomic<uint64_t> end_{~uint64_t{0}};  // what is from here on is not looked at
  std::mutex mutex_;                         // guards what follows
  CampaignState& state_;
  const uint64_t total_;
  uint64_t next_;
  std::vector<std::pair<uint64_t, uint64_t>> finished_;
  uint64_t last_failing_ = 0;  // by index
  uint32_t found_ = 0;         // failures, in this run
};

void SortFailures(CampaignState& state) {
  std::sort(state.failures.begin(), state.failures.end(),
            [](const Failure& a, const Failure& b) { return a.seed < b.seed; });
}

}  // namespace

uint64_t SchedulesOfShard(uint64_t schedules, uint32_t shard, uint32_t shards) {
  return schedules / shards + (shard <= schedules % shards ? 1 : 0);
}

absl::Status RunCampaign(const CampaignPlan& plan, const std::atomic<bool>& stop,
                         const std::function<void(const CampaignState&)>& progress,
                         CampaignState& state) {
  Work work(plan, stop, state);
  const auto tick = [&] {
    if (!progress) return;
    CampaignState now = work.Now();
    SortFailures(now);
    progress(now);
  };
  absl::Status ran = RunWorkers(
      plan.jobs, [&work] { return work.Thread(); }, tick, work.give_up());
  SortFailures(state);
  return ran;
}

}  // namespace sipi
