#include "vmm/timeline/service_analysis.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "guest/abi/cpuhp_state.h"

namespace sipi {
namespace {

using abi::TraceEvent;

// The time of the one holder of cpus_write_lock(): taken and given back on whatever CPUs.
class HoldClock {
 public:
  // The length of the hold that ended with this event; -1: none did.
  int64_t Take(const Event& event) {
    if (event.name == TraceEvent::kCpusWriteLocked) {
      held_ = true;
      since_ns_ = event.t_ns;
    }
    if (event.name != TraceEvent::kCpusWriteUnlock || !held_) return -1;
    held_ = false;
    return event.t_ns - since_ns_;
  }

  // The length by now of one that has not ended; -1: nobody holds it.
  int64_t HeldUntil(int64_t t_ns) const { return held_ ? t_ns - since_ns_ : -1; }

 private:
  bool held_ = false;
  int64_t since_ns_ = 0;
};

// Operations exclude each other from kHotplugBegin to kHotplugEnd; any number may be asked for.
class OperationScan {
 public:
  void Take(const Event& event) {
    switch (event.name) {
      case TraceEvent::kSyncEnd:
        seen_.Count(event.value);
        break;
      case TraceEvent::kHotplugAsked:
        asked_[event.target] = {.t_ns = event.t_ns, .seen = seen_, .taken = true};
        break;
      case TraceEvent::kHotplugBegin:
        Begin(event);
        break;
      case TraceEvent::kHotplugEnd:
        if (!open_ || event.target != operations_.back().cpu) break;
        operations_.back().error = event.value;
        End(event.t_ns);
        open_ = false;
        locked_ = from_.taken;
        break;
      case TraceEvent::kCpusWriteUnlock:
        if (locked_) End(event.t_ns);
        locked_ = false;
        break;
      default:
        break;
    }
  }
  std::vector<HotplugOperation> Finish() { return std::move(operations_); }

 private:
  struct From {
    int64_t t_ns = 0;
    Waits seen;
    bool taken = true;  // by the operation itself, which gives the locks back too
  };

  void Begin(const Event& event) {
    const auto asked = asked_.find(event.target);
    from_ = asked != asked_.end() ? asked->second
                                  : From{.t_ns = event.t_ns, .seen = seen_, .taken = false};
    if (asked != asked_.end()) asked_.erase(asked);
    HotplugOperation next;
    next.cpu = event.target;
    next.up = event.value >= static_cast<uint32_t>(abi::CpuhpState::kApOnlineIdle);
    next.asked_ns = from_.t_ns;
    next.begin_ns = event.t_ns;
    next.lock_waits = next.waits = seen_.Since(from_.seen);
    operations_.push_back(next);
    open_ = true;
    locked_ = false;
  }

  void End(int64_t t_ns) {
    operations_.back().ns = t_ns - from_.t_ns;
    operations_.back().waits = seen_.Since(from_.seen);
  }

  std::vector<HotplugOperation> operations_;
  std::map<uint16_t, From> asked_;  // by CPU
  Waits seen_;
  From from_;            // of the last operation
  bool open_ = false;    // it has not ended
  bool locked_ = false;  // it has, and has not given its locks back
};

}  // namespace

std::vector<SmtSwitch> SmtSwitches(const RunRecord& record) {
  std::vector<SmtSwitch> switches;
  std::map<uint32_t, uint32_t> seen;  // switches of each approach
  bool open = false;
  HoldClock hold;
  for (const Event& event : record.events) {
    const int64_t held_ns = hold.Take(event);
    if (event.name == TraceEvent::kSmtBegin) {
      SmtSwitch next;
      next.approach = static_cast<abi::SmtApproach>(event.value);
      next.off = seen[event.value]++ % 2 == 0;
      next.threads = event.target;
      next.begin_ns = event.t_ns;
      switches.push_back(next);
      open = true;
      continue;
    }
    if (!open) continue;
    SmtSwitch& current = switches.back();
    current.longest_hold_ns = std::max(current.longest_hold_ns, held_ns);
    if (event.name == TraceEvent::kSyncEnd) current.waits.Count(event.value);
    if (event.name == TraceEvent::kHotplugEnd) ++current.operations;
    if (event.name != TraceEvent::kSmtEnd) continue;
    current.ns = event.t_ns - current.begin_ns;
    current.failed = event.value;
    open = false;
  }
  if (open) {
    int64_t& longest_ns = switches.back().longest_hold_ns;
    longest_ns = std::max(longest_ns, hold.HeldUntil(record.events.back().t_ns));
  }
  return switches;
}

std::vector<HotplugOperation> HotplugOperations(const RunRecord& record) {
  OperationScan scan;
  for (const Event& event : record.events) scan.Take(event);
  return scan.Finish();
}

std::vector<GracePeriod> GracePeriods(const RunRecord& record) {
  std::vector<GracePeriod> periods;
  std::array<std::optional<size_t>, 2> open;  // index of the one in flight: normal, expedited
  for (const Event& event : record.events) {
    const bool expedited = event.name == TraceEvent::kExpBegin ||
                           event.name == TraceEvent::kExpSelected ||
                           event.name == TraceEvent::kExpEnd;
    std::optional<size_t>& mine = open[expedited ? 1 : 0];
    switch (event.name) {
      case TraceEvent::kGpBegin:
      case TraceEvent::kExpBegin:
        mine = periods.size();
        periods.push_back({.expedited = expedited,
                           .sequence = event.value,
                           .cpu = event.cpu,
                           .begin_ns = event.t_ns,
                           .ready_ns = {},
                           .scans_ns = {},
                           .end_ns = {}});
        break;
      case TraceEvent::kGpInit:
      case TraceEvent::kExpSelected:
        if (mine.has_value()) periods[*mine].ready_ns = event.t_ns;
        break;
      case TraceEvent::kGpFqs:
        if (mine.has_value()) periods[*mine].scans_ns.push_back(event.t_ns);
        break;
      case TraceEvent::kGpEnd:
      case TraceEvent::kExpEnd:
        if (mine.has_value()) periods[*mine].end_ns = event.t_ns;
        mine.reset();
        break;
      default:
        break;
    }
  }
  return periods;
}

uint64_t ScaleResult::measurements() const {
  return std::accumulate(
      durations_ns.begin(), durations_ns.end(), uint64_t{0},
      [](uint64_t sum, const auto& writer) { return sum + writer.second.size(); });
}

ScaleResult ScaleMeasurements(const RunRecord& record, bool expedited) {
  struct Writer {
    bool counts = false;
    std::optional<int64_t> begun_ns;
  };
  ScaleResult result;
  std::map<int32_t, Writer> writers;
  std::array<std::vector<int64_t>, 2> ends;  // of normal and expedited ones, in time order
  size_t ended = 0;
  for (const Event& event : record.events) {
    if (event.name == TraceEvent::kGpEnd) ends[0].push_back(event.t_ns);
    if (event.name == TraceEvent::kExpEnd) ends[1].push_back(event.t_ns);
    if (event.name == TraceEvent::kScaleBegin) {
      if (!result.begin_ns.has_value()) result.begin_ns = event.t_ns;
      writers[event.cpu].counts = true;
      result.durations_ns[static_cast<uint32_t>(event.cpu)];
      continue;
    }
    const auto found = writers.find(event.cpu);
    if (found == writers.end() || !found->second.counts) continue;
    Writer& writer = found->second;
    if (event.name == TraceEvent::kScaleEnd) {
      writer.counts = false;
      result.end_ns = event.t_ns;
      ++ended;
    } else if (event.name == TraceEvent::kSyncBegin) {
      writer.begun_ns = event.t_ns;
    } else if (event.name == TraceEvent::kSyncEnd && writer.begun_ns.has_value()) {
      result.durations_ns[static_cast<uint32_t>(event.cpu)].push_back(event.t_ns -
                                                                      *writer.begun_ns);
      writer.begun_ns.reset();
      if (event.value < result.served_by.size()) result.served_by[event.value] = true;
    }
  }
  if (ended < writers.size()) result.end_ns.reset();
  if (!result.served_by[0] && !result.served_by[1]) result.served_by[expedited ? 1 : 0] = true;
  if (!result.begin_ns.has_value()) return result;
  const int64_t until = result.end_ns.value_or(INT64_MAX);
  for (size_t kind = 0; kind < ends.size(); ++kind) {
    if (!result.served_by[kind]) continue;
    result.batches +=
        static_cast<uint64_t>(std::count_if(ends[kind].begin(), ends[kind].end(), [&](int64_t t) {
          return t >= *result.begin_ns && t <= until;
        }));
  }
  return result;
}

WorkerResult WorkerFigures(const RunRecord& record) {
  WorkerResult result;
  std::set<uint32_t> away;
  std::optional<int64_t> begin;
  for (const Event& event : record.events) {
    switch (event.name) {
      case TraceEvent::kWorkerPinned:
        result.pinned_us.emplace(event.target, event.value);
        break;
      case TraceEvent::kWorkerRanAway:
        ++result.ran_away;
        away.insert(event.target);
        break;
      case TraceEvent::kScaleBegin:
        if (!begin.has_value()) begin = event.t_ns;
        break;
      case TraceEvent::kScaleEnd:
        if (begin.has_value()) result.window_ns = event.t_ns - *begin;
        result.window_callbacks += event.value;
        break;
      default:
        break;
    }
  }
  result.ran_away_cpus.assign(away.begin(), away.end());
  return result;
}

std::vector<uint32_t> ReaderPoints(const RunRecord& record) {
  std::vector<uint32_t> points;
  for (const Event& event : record.events) {
    if (event.name == TraceEvent::kRefPoint) points.push_back(event.value);
  }
  return points;
}

}  // namespace sipi
