// Runs schedules, one after the other, in one machine's memory; and makes a failing one small.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "vmm/explore/explore_case.h"

namespace sipi {

// Leaves out of a case what Shrink left out. False: it has no such thing.
bool LeaveOut(const std::string& name, ExploreCase& explored);

// What rule a failing run broke: the text without numbers, and without what a CPU was doing, in
// parentheses. Two runs with the same kind of failure fail for what a person calls the same reason.
std::string FailureKind(const std::string& wrong);

// One thread's.
class Explorer {
 public:
  // What is wrong with the run; empty: nothing. The simulator stands at its end afterwards. Where
  // the host had no room for it, that is what is wrong, and host_error() says so too.
  std::string Run(const ExploreCase& explored);

  // The last run came to nothing because of the host, and says nothing about the guest.
  // ResourceExhausted.
  const absl::Status& host_error() const { return host_error_; }

  // Leaves out of a failing case what it fails in the same way without: faults, knobs, change
  // points, CPUs. Each try is one run. `wrong` gets what is wrong with the result, `left_out`, if
  // not null, the names of what was left out, in order.
  ExploreCase Shrink(const ExploreCase& failing, std::string* wrong,
                     std::vector<std::string>* left_out = nullptr);

  // Where the last run could have gone another way (Schedule::kChosen); valid until the next.
  std::span<const sim::ChoicePoint> ChoicePoints() const;

  // The last events of the last run.
  std::string Trace(const ExploreCase& explored, size_t count) const;

 private:
  std::string HostError(const std::string& what);

  std::unique_ptr<sim::Simulator> simulator_;  // null after an error of the host
  absl::Status host_error_;
  ArenaLayout arena_;
};

}  // namespace sipi
