// All schedules of one case with few preemptions: a walk, depth first, through the tree of choices.
//
// Stateless: a schedule is a list of choices, and is run from power-on. The next list is the last
// one, cut behind its last choice that has another alternative, which it takes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "guest/abi/boot_params.h"
#include "vmm/explore/explore_case.h"
#include "vmm/explore/explorer.h"

namespace sipi {

using ChoiceList = std::vector<uint16_t>;

// The list after the one that met `points`, whose first `fixed` choices stay; none if it was the
// last.
std::optional<ChoiceList> NextChoices(std::span<const sim::ChoicePoint> points, size_t fixed);

// Subtrees without a list in common which together hold every list but the one of zeros alone,
// which met `points`: each begins with zeros up to a point, and another alternative there.
std::vector<ChoiceList> Subtrees(std::span<const sim::ChoicePoint> points);

// "12:1,40:2": what is not 0, by its index; "0:0" if all is. And back. `flag` is what errors name.
std::string ChoicesText(const ChoiceList& choices);
absl::StatusOr<ChoiceList> ParseChoices(const std::string& flag, const std::string& text);

// The points where another way than the first was taken, a line each: for people.
std::string DescribeChoices(std::span<const sim::ChoicePoint> points);

struct ExhaustivePlan {
  ExploreSpace space;            // with 2 or 3 CPUs
  std::optional<uint64_t> seed;  // knobs, topology and delays as this seed draws them; else plain
  uint64_t met_at = 0;           // ExploreScenario::kRcu: one of kMeetings (rcu_case.h)
  abi::FaultSpec fault;
  uint32_t preemptions = 1;
  bool store_buffer = false;  // plain stores stay in the buffer until something drains it
  uint64_t max_schedules = ~uint64_t{0};
  uint32_t jobs = 1;
};

constexpr uint32_t kMaxExhaustiveCpus = 3;

// The plan's case, with no choice taken.
ExploreCase ExhaustiveCase(const ExhaustivePlan& plan);

struct ExhaustiveResult {
  uint64_t schedules = 0;             // that were run
  bool complete = false;              // ... and there are no more within the bound
  std::optional<ChoiceList> failing;  // the first one found; with it the walk ends
  std::string wrong;                  // what is wrong with it
  absl::Status error;                 // RunWorkers', Explorer's: the walk ended for want of room
};

// Runs all of them on `jobs` threads, until one fails, or soon after `*stop` is set. With one job
// the failing list is always the same. `progress` is called about every second with how many have
// been run, on the calling thread; may be null.
ExhaustiveResult RunExhaustive(const ExhaustivePlan& plan, const std::atomic<bool>& stop,
                               const std::function<void(uint64_t)>& progress);

// Leaves out of a failing list what it fails in the same way without, a run for each try, and
// leaves the explorer at the end of the result's run. `wrong` gets what is wrong with that.
ChoiceList ShrinkChoices(Explorer& explorer, const ExploreCase& failing, std::string* wrong);

}  // namespace sipi
