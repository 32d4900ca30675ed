// Exploring RCU and hotplug: what a seed draws for it, and what must hold at the end of such a run.
#pragma once

#include <string>

#include "vmm/explore/explore_case.h"

namespace sipi {

inline constexpr uint64_t kRcuTimeLimitMs = 30'000;

ExploreCase RcuCaseOf(uint64_t seed, const ExploreSpace& space);
bool ExploresRcu(const ExploreCase& explored);

// ", preemptible, fan-out 2/2 ...", for Describe.
std::string DescribeRcu(const RunConfig& config);

// What CheckRun says of it. Empty if all is well; else what is wrong, in a sentence.
//
//   - the guest ended by itself: its own checks are panics (guest/scenario/rcu_explore.h)
//   - every CPU is online, at the last state of the table
//   - no grace period, and nobody's wait for one, took longer than readers and stalls account for: a
//     wake-up that was lost and made good by a time-out is lost all the same
//   - no stall was reported, and no unbalanced rcu_unexpedite_gp()
std::string CheckRcuRun(const ExploreCase& explored, const ArenaLayout& arena,
                        const sim::Simulator& simulator, const sim::End& end);

}  // namespace sipi
