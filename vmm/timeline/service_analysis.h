// What a run's list of events says about the kernel beyond bring-up: SMT switches, CPUs that go off
// and on, grace periods, and what the scenarios measure. Reads nothing but RunRecord::events.
// Times are nanoseconds on the timeline's clock; what has no end in the timeline says so. Any
// thread; all are O(n) in the number of events.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "guest/abi/scenario.h"
#include "guest/abi/trace.h"
#include "vmm/timeline/run_record.h"

namespace sipi {

// Grace periods waited for, by abi::GracePeriodKind.
struct Waits {
  std::array<uint64_t, 3> by_kind = {};
  uint64_t of(abi::GracePeriodKind kind) const { return by_kind[static_cast<size_t>(kind)]; }
  void Count(uint32_t kind) {
    if (kind < by_kind.size()) ++by_kind[kind];
  }
  // Those of this one that are not in an earlier state of it.
  Waits Since(const Waits& before) const {
    Waits since;
    for (size_t i = 0; i < by_kind.size(); ++i) since.by_kind[i] = by_kind[i] - before.by_kind[i];
    return since;
  }
};

struct SmtSwitch {
  abi::SmtApproach approach = abi::SmtApproach::kNone;
  bool off = true;       // away from all threads; false: back to them
  uint32_t threads = 0;  // per core, that were to stay
  int64_t begin_ns = 0;
  std::optional<int64_t> ns;    // absent: it never ended
  uint32_t failed = 0;          // CPUs
  uint32_t operations = 0;      // CPUs that went off or on
  Waits waits;                  // of whomever, while it lasted
  int64_t longest_hold_ns = 0;  // the write lock of cpus_write_lock(), within the switch; of
                                // one that has not ended with the hold so far
};

// In time order. Of one approach every other one is `off`, the first one too.
std::vector<SmtSwitch> SmtSwitches(const RunRecord& record);

// One CPU going off or on, as who asked for it sees it: with the time until the locks are held. An
// operation within an SMT switch, which takes the locks itself, begins where it has them.
struct HotplugOperation {
  uint32_t cpu = 0;
  bool up = false;
  int64_t asked_ns = 0;
  int64_t begin_ns = 0;       // the locks are held
  std::optional<int64_t> ns;  // from asked_ns until cpus_write_unlock(); absent: it never ended
  uint32_t error = 0;         // 0: it worked
  // Grace periods waited for, of whomever: while it lasted, and of these until begin_ns.
  Waits waits;
  Waits lock_waits;

  int64_t lock_ns() const { return begin_ns - asked_ns; }
};

// In order of begin_ns.
std::vector<HotplugOperation> HotplugOperations(const RunRecord& record);

// One grace period's life. Normal: begin, set up, scans, end; expedited: begin, all leaves asked,
// end.
struct GracePeriod {
  bool expedited = false;
  uint32_t sequence = 0;
  int32_t cpu = 0;  // where its kthread or worker began it
  int64_t begin_ns = 0;
  std::optional<int64_t> ready_ns;  // kGpInit, kExpSelected
  std::vector<int64_t> scans_ns;    // kGpFqs
  std::optional<int64_t> end_ns;
};

// Both kinds, in order of their begin. At most one of each kind is in flight at a time.
std::vector<GracePeriod> GracePeriods(const RunRecord& record);

// `sipi rcu scale`: the window in which measurements counted, and what was measured.
struct ScaleResult {
  std::map<uint32_t, std::vector<int64_t>> durations_ns;  // by the writer's CPU, in order
  std::optional<int64_t> begin_ns;                        // the first writer's
  std::optional<int64_t> end_ns;  // the last writer's; absent: some writer never ended
  // Which grace periods served the measurements: normal, expedited. Others than those asked for,
  // where rcu_expedited or rcu_normal decides; of `call_rcu` and where nothing was measured, those
  // asked for.
  std::array<bool, 2> served_by = {};
  uint64_t batches = 0;  // grace periods of these kinds that ended in the window

  bool served(abi::GracePeriodKind kind) const { return served_by[static_cast<size_t>(kind)]; }

  uint64_t measurements() const;
};

ScaleResult ScaleMeasurements(const RunRecord& record, bool expedited);

// `sipi rcu callrcu`.
struct WorkerResult {
  std::map<uint32_t, uint64_t> pinned_us;  // by CPU: its worker's time until it was bound
  uint64_t ran_away = 0;                   // workers seen on another CPU than their own
  std::vector<uint32_t> ran_away_cpus;     // whose, each once, in ascending order
  std::optional<int64_t> window_ns;        // from the first callback queued until all have run
  uint64_t window_callbacks = 0;           // those queued in it
};

WorkerResult WorkerFigures(const RunRecord& record);

// `sipi rcu ref`: picoseconds a read took, of each round.
std::vector<uint32_t> ReaderPoints(const RunRecord& record);

}  // namespace sipi
