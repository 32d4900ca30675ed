#include "vmm/explore/exhaustive.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "vmm/explore/rcu_case.h"
#include "vmm/explore/workers.h"

namespace sipi {
namespace {

// Nothing that hides an order: short waits, short calibration, time-outs that no schedule meets.
ExploreCase PlainCase(const ExploreSpace& space) {
  ExploreCase plain;
  RunConfig& config = plain.config;
  config.machine = MachineKind::kSim;
  config.serial_fd = -1;
  config.cpus = space.cpus;
  config.topology = FlatTopology(config.cpus);
  for (uint32_t cpu = 1; cpu < config.cpus; ++cpu) config.order.push_back(cpu);
  config.strategy = sequence::MakeStrategy(space.strategy.value_or(sequence::StrategyId::kSerial));
  config.retry = space.retry.value_or(false);
  config.settle = true;
  config.scenario = abi::Scenario::kIpiAll;
  config.clock_known = true;
  config.knobs.handshake_timeout_ms = 10'000;
  config.knobs.calibration_us = 20;
  config.knobs.kick.sipi_delay_us = 1;
  config.knobs.kick.sipi_idle_delay_us = 0;
  config.knobs.wait_spin_us = 1;
  config.knobs.control_spin_us = 1;
  plain.held_ns.assign(config.cpus, 0);
  return plain;
}

class Walk {
 public:
  Walk(const ExhaustivePlan& plan, const std::atomic<bool>& stop)
      : plan_(plan), stop_(stop), case_(ExhaustiveCase(plan)) {}

  // The list of zeros, whose points tell the subtrees.
  absl::Status Begin() {
    Explorer explorer;
    if (RunOne(explorer, case_)) subtrees_ = Subtrees(explorer.ChoicePoints());
    return explorer.host_error();
  }

  absl::Status Thread() {
    Explorer explorer;
    ExploreCase tried = case_;
    for (size_t at = next_++; at < subtrees_.size() && !over(); at = next_++) {
      tried.choices = subtrees_[at];
      while (RunOne(explorer, tried)) {
        std::optional<ChoiceList> next = NextChoices(explorer.ChoicePoints(), subtrees_[at].size());
        if (!next) {
          ++walked_;
          break;
        }
        tried.choices = *std::move(next);
      }
      if (!explorer.host_error().ok()) return explorer.host_error();
    }
    return absl::OkStatus();
  }

  uint64_t schedules() const { return run_.load(); }
  std::atomic<bool>& give_up() { return over_; }

  ExhaustiveResult Result(absl::Status ran) {
    result_.schedules = run_.load();
    result_.error = std::move(ran);
    result_.complete = result_.error.ok() && !result_.failing && !cut_.load() &&
                       walked_.load() == subtrees_.size();
    return std::move(result_);
  }

 private:
  bool over() const { return stop_.load(std::memory_order_relaxed) || over_.load(); }

  // False: the walk ends here.
  bool RunOne(Explorer& explorer, const ExploreCase& tried) {
    if (over()) {
      cut_ = true;
      return false;
    }
    if (run_.fetch_add(1) >= plan_.max_schedules) {
      --run_;
      cut_ = true;
      over_ = true;
      return false;
    }
    std::string wrong = explorer.Run(tried);
    if (wrong.empty()) return true;
    if (!explorer.host_error().ok()) {
      --run_;
      over_ = true;
      return false;
    }
    const std::lock_guard lock(mutex_);
    over_ = true;
    if (!result_.failing) {
      result_.failing = tried.choices;
      result_.wrong = std::move(wrong);
    }
    return false;
  }

  const ExhaustivePlan& plan_;
  const std::atomic<bool>& stop_;
  const ExploreCase case_;
  std::vector<ChoiceList> subtrees_;
  std::atomic<size_t> next_{0};
  std::atomic<size_t> walked_{0};
  std::atomic<uint64_t> run_{0};
  std::atomic<bool> over_{false};
  std::atomic<bool> cut_{false};
  std::mutex mutex_;  // guards what follows
  ExhaustiveResult result_;
};

}  // namespace

ExploreCase ExhaustiveCase(const ExhaustivePlan& plan) {
  ExploreSpace space = plan.space;
  space.faults = false;
  const bool rcu = space.scenario == ExploreScenario::kRcu;
  ExploreCase base = plan.seed ? CaseOf(*plan.seed, space)
                     : rcu     ? ExpHotplugCase(plan.met_at)
                               : PlainCase(space);
  base.chaos = {};
  base.chaos.marked = rcu;
  base.chaos.calls_need_life = rcu;
  base.chaos.on = true;
  base.chaos.schedule = sim::Schedule::kChosen;
  base.chaos.preemptions = plan.preemptions;
  base.chaos.store_buffer = plan.store_buffer;
  base.chaos.canary = space.canary;
  if (plan.fault.kind != abi::Fault::kNone) {
    base.config.fault = plan.fault;
    base.doomed_cpu = plan.fault.cpu;
  }
  return base;
}

ChoiceList ShrinkChoices(Explorer& explorer, const ExploreCase& failing, std::string* wrong) {
  ExploreCase best = failing;
  const std::string kind = FailureKind(explorer.Run(best));
  for (size_t i = best.choices.size(); i-- > 0;) {
    if (best.choices[i] == 0) continue;
    ExploreCase tried = best;
    tried.choices[i] = 0;
    const bool fails = FailureKind(explorer.Run(tried)) == kind && explorer.host_error().ok();
    // What follows may stand at points of another kind now, or at none.
    const auto points = explorer.ChoicePoints();
    bool fits = tried.choices.size() <= points.size();
    for (size_t at = 0; fits && at < tried.choices.size(); ++at) {
      fits = points[at].taken == tried.choices[at];
    }
    if (fails && fits) best = std::move(tried);
  }
  while (!best.choices.empty() && best.choices.back() == 0) best.choices.pop_back();
  *wrong = explorer.Run(best);
  return best.choices;
}

ExhaustiveResult RunExhaustive(const ExhaustivePlan& plan, const std::atomic<bool>& stop,
                               const std::function<void(uint64_t)>& progress) {
  Walk walk(plan, stop);
  absl::Status ran = walk.Begin();
  const auto tick = [&] {
    if (progress) progress(walk.schedules());
  };
  if (ran.ok())
    ran = RunWorkers(
        plan.jobs, [&walk] { return walk.Thread(); }, tick, walk.give_up());
  return walk.Result(std::move(ran));
}

}  // namespace sipi
