// Exploring RCU and hotplug: what a seed draws for it, and what must hold at the end of such a run.
#pragma once

#include <string>

#include "vmm/explore/explore_case.h"

namespace sipi {

inline constexpr uint64_t kRcuTimeLimitMs = 30'000;

ExploreCase RcuCaseOf(uint64_t seed, const ExploreSpace& space);
bool ExploresRcu(const ExploreCase& explored);

// One expedited grace period against one CPU that goes off and on, of three in two leaves (case
// G8): it begins where that CPU comes to a state of these. scenario_value of
// abi::Scenario::kExpHotplug.
inline constexpr uint64_t kUpwards = uint64_t{1} << 32;
inline constexpr uint64_t kMeetings[] = {
    // Down: from active over dying to dead, and what the control CPU does then.
    234, 188, 147, 143, 142, 136, 92, 89, 88, 85, 83, 82, 58, 43, 1, 0,
    // Up: prepare, starting, online.
    kUpwards | 1, kUpwards | 43, kUpwards | 58, kUpwards | 82, kUpwards | 83, kUpwards | 85,
    kUpwards | 86, kUpwards | 89, kUpwards | 136, kUpwards | 141, kUpwards | 143, kUpwards | 147,
    kUpwards | 188, kUpwards | 234};
ExploreCase ExpHotplugCase(uint64_t met_at);
std::string MeetingText(uint64_t met_at);  // "down:136", "up:85": as flags have it
std::string MetAt(uint64_t met_at);        // "smpcfd:dying on the way down"

// ", preemptible, fan-out 2/2 ...", for Describe.
std::string DescribeRcu(const RunConfig& config);

// What CheckRun says of it. Empty if all is well; else what is wrong, in a sentence.
//
//   - the guest ended by itself: its own checks are panics (guest/scenario/rcu_explore.h)
//   - every CPU is online, at the last state of the table
//   - no grace period took longer than readers and stalls account for: a wake-up that was lost and
//     made good by a time-out is lost all the same
//   - no stall was reported, and no unbalanced rcu_unexpedite_gp()
std::string CheckRcuRun(const ExploreCase& explored, const ArenaLayout& arena,
                        const sim::Simulator& simulator, const sim::End& end);

}  // namespace sipi
