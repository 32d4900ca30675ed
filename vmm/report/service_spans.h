// Tracks of a trace for what belongs to no CPU: grace periods, and who moves CPUs.
#pragma once

#include <cstdint>
#include <map>

#include "vmm/report/trace_spans.h"
#include "vmm/timeline/run_record.h"

namespace sipi {

// Keys beside those of CPUs and kVmTrack.
inline constexpr int32_t kRcuTrack = -2;
inline constexpr int32_t kExpeditedTrack = -3;
inline constexpr int32_t kHotplugTrack = -4;

// "RCU", "RCU expedited", "hotplug"; null for other tracks.
const char* ServiceTrackName(int32_t track);

// Adds those of the three that have something on them, their spans nested:
//   rcu      "grace period N", in it "init" and "wait" (expedited: "select" and "wait"); each scan
//            is an instant
//   hotplug  "smt off: expedite", "CPU 5 off", "write lock wanted", "write lock"
void AddServiceTracks(const RunRecord& record, std::map<int32_t, TraceTrack>& tracks);

}  // namespace sipi
