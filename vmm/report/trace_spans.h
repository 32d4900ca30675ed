// What a trace shows of a run, track by track, before it is written as JSON.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "vmm/report/span.h"
#include "vmm/timeline/run_record.h"

namespace sipi {

// The spans and instants of one track: a CPU's, or the VM's (kVmTrack).
struct TraceTrack {
  std::vector<Span> spans;             // nested, outer ones first
  std::vector<const Event*> instants;  // in time order; they point into the record
};

// Tracks by CPU number, and those of service_spans.h; the VM's and those of all CPUs offered are
// there, even if empty. Spans are:
//   cpuhp      a CPU's cpuhp states, on the track of the CPU that moves, whoever executes the step
//   handshake  kicked, alive, should-online, online; should-die after it was given up
//   control    smpboot, pass, kick, wait-alive, tsc-check on the track of the CPU that does them
//   own        calibrate; imposed latencies ("imposed: startup")
// An event that begins or ends one of the last two groups is no instant, unless its other half is
// missing (an end without a begin); a begin without an end gives a span to the end of the run that
// is marked unfinished. Everything else but kCpuhpEnter is an instant.
std::map<int32_t, TraceTrack> TraceTracks(const RunRecord& record);

}  // namespace sipi
