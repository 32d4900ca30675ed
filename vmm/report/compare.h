// Several runs of several strategies, side by side: what compare_table and compare_json print.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "vmm/timeline/analysis.h"
#include "vmm/timeline/run_record.h"
#include "vmm/timeline/statistics.h"

namespace sipi {

// One run, reduced to its figures.
struct Sample {
  std::optional<int64_t> smpboot_ns;
  std::array<int64_t, kPhaseCount> phases_ns = {};  // wall-clock time of each phase, by Phase
  uint32_t cpus_online = 0;
  uint64_t lost_events = 0;
  uint64_t seed = 0;
  Outcome outcome = Outcome::kComplete;
  bool vetoed = false;  // the guest came up serially instead
};

struct CompareRow {
  std::string strategy;
  uint32_t runs = 0;
  uint32_t partial_runs = 0;  // runs that did not bring up every CPU that was offered
  uint32_t vetoed_runs = 0;   // runs in which the guest refused the strategy and came up serially
  uint32_t cpus_offered = 0;
  uint32_t cpus_online = 0;  // the least of the runs
  // Of the complete runs; of all that have a smpboot time if no run is complete.
  std::optional<Summary> smpboot_ns = std::nullopt;
  // Median over the same runs, of each phase's wall-clock time; by Phase.
  std::array<int64_t, kPhaseCount> phases_ns = {};
  // The baseline's median divided by this row's. Absent where one of the two has no complete run: a
  // fast wrong run does not win.
  std::optional<double> ratio = std::nullopt;
  std::vector<Sample> samples = {};
};

// Keeps the figures of the runs, not their timelines. Not thread-safe.
class Comparison {
 public:
  // `baseline` is the strategy that the ratios refer to.
  explicit Comparison(std::string baseline) : baseline_(std::move(baseline)) {}

  // Adds one run to the row of record.strategy; rows stand in the order of their first run.
  void Add(const RunRecord& record);

  // Computed anew at each call.
  std::vector<CompareRow> Rows() const;

  const std::string& baseline() const { return baseline_; }
  // What the runs have in common: the first run's record without its CPUs, events, counters and
  // notes.
  const RunRecord& common() const { return common_; }
  bool empty() const { return groups_.empty(); }

 private:
  struct Group {
    std::string strategy;
    uint32_t cpus_offered = 0;
    std::vector<Sample> samples = {};
  };

  std::string baseline_;
  RunRecord common_;
  std::vector<Group> groups_;
};

}  // namespace sipi
