// What a run's list of events says: how long SMP bring-up took, its phases, and each CPU's
// milestones. Everything the tool prints or writes about times comes from here, and this reads
// nothing but RunRecord::events and cpus_offered.
//
// All times are nanoseconds on the timeline's clock (Event::t_ns). What has no event is absent,
// never zero.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "guest/abi/cpuhp_state.h"
#include "vmm/timeline/run_record.h"

namespace sipi {

// The phases of bring-up: what CPUs do that go off and on after it belongs to none. Each is a set
// of intervals, at most a few per CPU:
//   kick        [kKickBegin, kKickEnd] on the CPU that kicks
//   ap_startup  [first SIPI after the kick, kAlive] of an AP. The SIPI is the one its vCPU took
//   (kSipiDelivered), else
//               the first one sent to it (kIcrWrite, kIpiSent), else the kick's end.
//   wait_alive  [kWaitAliveBegin, kWaitAliveEnd] on the CPU that waits
//   starting    [kReleased, kCpuhpEnter of ap:online-idle] on the AP
//   online      [kCpuhpEnter of ap:online-idle on the AP, kOnline of the AP]
enum class Phase { kKick, kApStartup, kWaitAlive, kStarting, kOnline };
inline constexpr size_t kPhaseCount = 5;
inline constexpr std::array<Phase, kPhaseCount> kPhases = {
    Phase::kKick, Phase::kApStartup, Phase::kWaitAlive, Phase::kStarting, Phase::kOnline};

// "kick", "ap_startup", "wait_alive", "starting", "online": the keys of phases_ns in the files.
const char* Name(Phase phase);

// An interval that began and never ended (an AP that never came alive) is counted in `unfinished`
// and in no time: its length would be that of the wait that gave up.
struct PhaseTimes {
  int64_t wall_ns =
      0;  // time during which at least one CPU was in the phase (union of the intervals)
  int64_t sum_ns = 0;                // of all intervals
  std::optional<int64_t> median_ns;  // of the intervals
  uint32_t intervals = 0;
  uint32_t unfinished = 0;
};

struct CpuTimes {
  std::optional<int64_t> kicked_ns;             // first kKickBegin for this CPU, or for all
  std::optional<int64_t> first_instruction_ns;  // kFirstInstruction; the boot CPU's kBootEntry
  std::optional<int64_t> alive_ns;
  std::optional<int64_t> online_ns;
};

// A time in one cpuhp state. A state that a CPU enters itself lasts until its own next kCpuhpEnter,
// its kOnline or kParked; one that another CPU enters for it (the PREPARE section) lasts until the
// next kCpuhpEnter for it by whomever, or its kOnline. What nothing ends lasts until the last
// event.
struct CpuhpSpan {
  int32_t cpu = 0;
  abi::CpuhpState state = abi::CpuhpState::kOffline;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  bool finished = true;  // false: the timeline ended in this state
};

struct Analysis {
  std::optional<int64_t>
      smpboot_ns;  // kSmpbootBegin until kSmpbootEnd; absent if either is missing
  std::optional<int64_t> smpboot_begin_ns;
  // The part of smpboot_ns in which no CPU was in any phase: what the control CPU does between
  // them, and the time from a release until the AP has seen it. With the union of all phases
  // within smpboot it adds up to smpboot_ns. Absent as that is.
  std::optional<int64_t> other_ns;
  std::array<PhaseTimes, kPhaseCount> phases;
  std::vector<CpuTimes> cpus;  // one per CPU offered
  // CPUs with kOnline; the boot CPU counts as soon as it has run (kBootEntry), it was never
  // offline.
  uint32_t cpus_online = 0;
  std::vector<CpuhpSpan> cpuhp_spans;  // by begin

  const PhaseTimes& phase(Phase p) const { return phases[static_cast<size_t>(p)]; }
};

// O(n log n). Events of CPUs beyond cpus_offered are ignored. Any thread.
Analysis Analyze(const RunRecord& record);

}  // namespace sipi
