#include "vmm/explore/campaign.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "vmm/explore/explorer.h"
#include "vmm/explore/workers.h"

namespace sipi {
namespace {

constexpr uint64_t kChunk = 512;  // schedules that a thread takes at once

// Chunks go out in order and come back in any; `done` is what is complete from the first on.
class Work {
 public:
  Work(const CampaignPlan& plan, const std::atomic<bool>& stop, CampaignState& state)
      : plan_(plan),
        stop_(stop),
        state_(state),
        total_(SchedulesOfShard(plan.schedules, plan.shard, plan.shards)),
        next_(state.done) {}

  absl::Status Thread() {
    Explorer explorer;
    uint64_t begin = 0;
    uint64_t end = 0;
    while (Take(&begin, &end)) {
      bool whole = true;
      for (uint64_t i = begin; i < end && whole; ++i) {
        const ExploreCase explored = CaseOf(SeedOf(i), plan_.space);
        std::string wrong = explorer.Run(explored);
        if (!explorer.host_error().ok()) return explorer.host_error();
        if (!wrong.empty()) Fail({explored.seed, std::move(wrong)});
        whole = !over();
        if (!whole && i + 1 == end) whole = true;
      }
      if (whole) Finish(begin, end);
    }
    return absl::OkStatus();
  }

  // What is done by now. The threads go on.
  CampaignState Now() {
    const std::lock_guard lock(mutex_);
    return state_;
  }
  std::atomic<bool>& give_up() { return full_; }

 private:
  uint64_t SeedOf(uint64_t index) const {
    return plan_.first_seed + index * plan_.shards + plan_.shard - 1;
  }
  bool over() const {
    return stop_.load(std::memory_order_relaxed) || full_.load(std::memory_order_relaxed);
  }

  bool Take(uint64_t* begin, uint64_t* end) {
    const std::lock_guard lock(mutex_);
    if (next_ >= total_ || over()) return false;
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

  void Fail(Failure failure) {
    const std::lock_guard lock(mutex_);
    state_.failures.push_back(std::move(failure));
    if (state_.failures.size() >= plan_.max_failures) full_.store(true, std::memory_order_relaxed);
  }

  const CampaignPlan& plan_;
  const std::atomic<bool>& stop_;
  std::mutex mutex_;  // guards what follows
  CampaignState& state_;
  const uint64_t total_;
  uint64_t next_;
  std::vector<std::pair<uint64_t, uint64_t>> finished_;
  std::atomic<bool> full_{false};  // enough failures, or no way to go on
};

// By seed, each once: a resumed campaign may have met a seed before.
void SortFailures(CampaignState& state) {
  std::sort(state.failures.begin(), state.failures.end(),
            [](const Failure& a, const Failure& b) { return a.seed < b.seed; });
  state.failures.erase(
      std::unique(state.failures.begin(), state.failures.end(),
                  [](const Failure& a, const Failure& b) { return a.seed == b.seed; }),
      state.failures.end());
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
