// Merges the guest's rings and the host's logs into one list of events on one clock.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "guest/abi/trace.h"
#include "vmm/timeline/host_log.h"
#include "vmm/timeline/run_record.h"

namespace sipi {

// How TSC ticks become nanoseconds. guest TSC = host TSC + guest_minus_host.
struct TscClock {
  uint64_t tsc_khz = 0;
  int64_t guest_minus_host = 0;
};

// The records of one guest CPU. `records` are those that lie within the ring (guest/abi/trace.h
// says how the cursor tells how many were lost). The memory is the guest's, so nothing in it is
// trusted.
struct GuestRing {
  int32_t cpu = 0;
  std::span<const abi::TraceRecord> records = {};
  uint64_t lost = 0;
};

// The log of one thread of the VMM: a CPU's, or kVmTrack.
struct HostTrack {
  int32_t cpu = kVmTrack;
  const HostLog* log = nullptr;
};

// `lost` counts what the rings and logs could not hold, and guest records that are no events: of a
// number that nobody knows, or without a time. `unfinished` counts guest records that their writers
// had taken but not finished when the run ended, wherever in the ring they stand
// (guest/abi/trace.h): nothing that happened is missing with them. `adjusted` counts
// events whose time was moved to keep the order of their own track: a record that an interrupt
// overtook, a TSC that went backwards, a time before the run.
struct Timeline {
  std::vector<Event>
      events;  // by time; equal times keep the order of their track, host before guest
  uint64_t lost = 0;
  uint64_t unfinished = 0;
  uint64_t adjusted = 0;
};

// Preconditions: the writers of `rings` and `tracks` have stopped; clock.tsc_khz is not 0. t_ns
// counts from the first host event, or the first of all if the host has none. Any thread; O(n log
// n).
Timeline Collect(std::span<const GuestRing> rings, std::span<const HostTrack> tracks,
                 const TscClock& clock);

}  // namespace sipi
