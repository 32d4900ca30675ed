#include "vmm/explore/explorer.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "vmm/explore/drawn_topology.h"
#include "vmm/explore/explore_check.h"
#include "vmm/explore/rcu_case.h"

namespace sipi {
namespace {

struct Change {
  std::string name;
  std::function<void(ExploreCase&)> apply;
};
constexpr char kCpu[] = "cpu";

const std::vector<Change>& Changes() {
  static const std::vector<Change> changes = [] {
    std::vector<Change> list;
    for (const RateName& rate : RateNames()) {
      list.push_back({rate.name, [member = rate.member](ExploreCase& c) {
                        c.chaos.*member = sim::Rate::kOff;
                      }});
    }
    list.push_back({"failing-step", [](ExploreCase& c) {
                      c.doomed_cpu.reset();
                      c.config.fault = {};
                      c.firmware_lies = false;
                    }});
    list.push_back(
        {"held-cpus", [](ExploreCase& c) { std::fill(c.held_ns.begin(), c.held_ns.end(), 0); }});
    list.push_back({"store-buffer", [](ExploreCase& c) { c.chaos.store_buffer = false; }});
    list.push_back({"schedule", [](ExploreCase& c) { c.chaos.schedule = sim::Schedule::kTimed; }});
    list.push_back({"change-points", [](ExploreCase& c) { c.chaos.change_points = 1; }});
    list.push_back({"no-reuse", [](ExploreCase& c) { c.config.strategy.reuse_calibration = 1; }});
    list.push_back({"overlap", [](ExploreCase& c) { c.config.strategy.overlap = 0; }});
    list.push_back({"retry", [](ExploreCase& c) { c.config.retry = false; }});
    list.push_back({"tsc-check", [](ExploreCase& c) { c.config.knobs.tsc_check = 0; }});
    list.push_back({"cache-rendezvous",
                    [](ExploreCase& c) { c.config.knobs.cache_setup = abi::CacheSetup::kEach; }});
    list.push_back(
        {"spinning-aps", [](ExploreCase& c) { c.config.knobs.ap_wait = abi::WaitMode::kHalt; }});
    list.push_back({"ipi-all", [](ExploreCase& c) {
                      if (!ExploresRcu(c)) c.config.scenario = abi::Scenario::kSmpboot;
                    }});
    list.push_back({"rounds", [](ExploreCase& c) {
                      if (ExploresRcu(c)) c.config.scenario_knobs.rounds = 1;
                    }});
    list.push_back({"exp-parallel", [](ExploreCase& c) { c.config.kernel.rcu_exp_parallel = 0; }});
    list.push_back({"short-bound", [](ExploreCase& c) {
                      c.config.knobs.handshake_timeout_ms = 10'000;
                      c.short_bound = false;
                    }});
    list.push_back(
        {"order", [](ExploreCase& c) { std::sort(c.config.order.begin(), c.config.order.end()); }});
    list.push_back({"places", [](ExploreCase& c) { UsePlainPlaces(c.config.topology); }});
    list.push_back({"unknown-clock", [](ExploreCase& c) { c.config.clock_known = true; }});
    return list;
  }();
  return changes;
}

// One CPU less; false if there is none to spare.
bool DropCpu(ExploreCase& c) {
  if (c.config.cpus <= 2 || c.doomed_cpu == c.config.cpus - 1) return false;
  --c.config.cpus;
  DropLastCpu(c.config.topology);
  std::erase(c.config.order, c.config.cpus);
  c.held_ns.pop_back();
  return true;
}

}  // namespace

std::string Explorer::Run(const ExploreCase& explored) {
  arena_ = PlanSimulatedArena(NeedsOf(explored.config));
  host_error_ = absl::OkStatus();
  std::string error;
  sim::Options options = OptionsOf(explored, arena_);
  options.before_settling = [this, &explored] {
    return CheckBeforeSettling(explored, arena_, *simulator_);
  };
  if (simulator_ == nullptr) {
    simulator_ = sim::Simulator::Create(std::move(options), &error);
    if (simulator_ == nullptr) return HostError(error);
  } else if (!simulator_->Reset(std::move(options), &error)) {
    return HostError(error);
  }
  const sim::End end = simulator_->Run();
  if (end.kind == sim::EndKind::kHostError) return HostError(end.text);
  return CheckRun(explored, arena_, *simulator_, end);
}

std::string Explorer::HostError(const std::string& what) {
  simulator_ = nullptr;
  host_error_ = absl::ResourceExhaustedError(what);
  return what;
}

std::string FailureKind(const std::string& wrong) {
  std::string kind;
  uint32_t depth = 0;
  for (const char c : wrong) {
    if (c == ')' && depth != 0) --depth;
    if (c == '(') ++depth;
    if (depth != 0) continue;
    const bool digit = c >= '0' && c <= '9';
    if (digit && !kind.empty() && kind.back() == '#') continue;
    kind += digit ? '#' : c;
  }
  return kind;
}

bool LeaveOut(const std::string& name, ExploreCase& explored) {
  if (name == kCpu) return DropCpu(explored);
  for (const Change& change : Changes()) {
    if (change.name != name) continue;
    change.apply(explored);
    return true;
  }
  return false;
}

ExploreCase Explorer::Shrink(const ExploreCase& failing, std::string* wrong,
                             std::vector<std::string>* left_out) {
  ExploreCase best = failing;
  *wrong = Run(best);
  const std::string kind = FailureKind(*wrong);
  const auto keep_if_failing = [&](ExploreCase tried, const std::string& name) {
    std::string its = Run(tried);
    if (its.empty() || !host_error_.ok() || FailureKind(its) != kind) return false;
    if (left_out != nullptr) left_out->push_back(name);
    best = std::move(tried);
    *wrong = std::move(its);
    return true;
  };
  for (const Change& change : Changes()) {
    ExploreCase tried = best;
    change.apply(tried);
    keep_if_failing(std::move(tried), change.name);
  }
  for (ExploreCase tried = best; DropCpu(tried) && keep_if_failing(tried, kCpu); tried = best) {
  }
  Run(best);
  return best;
}

std::span<const sim::ChoicePoint> Explorer::ChoicePoints() const {
  if (simulator_ == nullptr) return {};
  return simulator_->choice_points();
}

std::string Explorer::Trace(const ExploreCase& explored, size_t count) const {
  if (simulator_ == nullptr) return "";
  return LastEvents(explored, arena_, *simulator_, count);
}

}  // namespace sipi
