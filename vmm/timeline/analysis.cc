#include "vmm/timeline/analysis.h"

#include <algorithm>
#include <utility>

#include "apic/regs/icr.h"
#include "vmm/timeline/statistics.h"

namespace sipi {
namespace {

using abi::TraceEvent;

struct Interval {
  int64_t begin_ns;
  int64_t end_ns;
};

int64_t UnionLength(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.begin_ns < b.begin_ns; });
  int64_t length = 0;
  int64_t covered_until = INT64_MIN;
  for (const Interval& interval : intervals) {
    const int64_t begin = std::max(interval.begin_ns, covered_until);
    if (interval.end_ns > begin) length += interval.end_ns - begin;
    covered_until = std::max(covered_until, interval.end_ns);
  }
  return length;
}

// What a CPU is in the middle of, as an AP that comes up.
struct Ap {
  std::optional<int64_t> kick_begin;  // of the last try; cleared by alive
  std::optional<int64_t> kick_end;
  std::optional<int64_t> sipi_sent;
  std::optional<int64_t> sipi_taken;
  std::optional<int64_t> released;
  std::optional<int64_t> idle;
  // Indices in Analysis::cpuhp_spans: the state that the CPU itself has entered, and the one that
  // another CPU has entered for it. With kick+wait both go on at once.
  std::optional<size_t> own_span;
  std::optional<size_t> foreign_span;
};

// What a track (a CPU's or the VM's) is in the middle of, as the control CPU.
struct Control {
  std::optional<int64_t> kick_begin;
  std::optional<int64_t> wait_begin;
};

class Scan {
 public:
  explicit Scan(uint32_t cpus) : aps_(cpus), controls_(cpus + size_t{1}) { out_.cpus.resize(cpus); }

  void Take(const Event& e);
  Analysis Finish(int64_t end_ns);

 private:
  bool IsCpu(int32_t cpu) const { return cpu >= 0 && static_cast<size_t>(cpu) < aps_.size(); }
  Ap& ap(int32_t cpu) { return aps_[static_cast<size_t>(cpu)]; }
  CpuTimes& times(int32_t cpu) { return out_.cpus[static_cast<size_t>(cpu)]; }
  Control& control(int32_t track) { return controls_[static_cast<size_t>(int64_t{track} + 1)]; }

  // Calls fn(cpu) for the CPUs that `e` is aimed at. A broadcast reaches neither its sender nor the
  // boot CPU, which is the one that has nothing to be woken for.
  template <class Fn>
  void ForEachTarget(const Event& e, Fn fn) {
    if (e.target != abi::kAllTargets) {
      if (IsCpu(e.target)) fn(e.target);
      return;
    }
    for (int32_t cpu = 1; IsCpu(cpu); ++cpu) {
      if (cpu != e.cpu) fn(cpu);
    }
  }

  void Add(Phase phase, int64_t begin_ns, int64_t end_ns) {
    if (after_boot_) return;
    intervals_[static_cast<size_t>(phase)].push_back({begin_ns, std::max(begin_ns, end_ns)});
  }
  void AddUnfinished(Phase phase) {
    if (!after_boot_) ++out_.phases[static_cast<size_t>(phase)].unfinished;
  }
  void CountUnfinished();

  void TakeMilestone(const Event& e);
  void TakeControl(const Event& e);
  void KickBegin(const Event& e);
  void KickEnd(const Event& e);
  void SipiSent(const Event& e);
  void Alive(const Event& e);
  void EnterState(const Event& e);
  void Online(const Event& e);
  void CloseSpan(std::optional<size_t>& span, int64_t end_ns);
  int64_t OutsidePhases(int64_t begin_ns, int64_t end_ns) const;

  Analysis out_;
  std::array<std::vector<Interval>, kPhaseCount> intervals_;
  std::vector<Ap> aps_;
  std::vector<Control> controls_;  // by track + 1, so the VM's comes first
  bool after_boot_ = false;        // CPUs go off and on; the phases are those of bring-up
};

void Scan::KickBegin(const Event& e) {
  Control& kicker = control(e.cpu);
  if (kicker.kick_begin.has_value()) AddUnfinished(Phase::kKick);
  kicker.kick_begin = e.t_ns;
  ForEachTarget(e, [&](int32_t cpu) {
    if (!times(cpu).kicked_ns.has_value()) times(cpu).kicked_ns = e.t_ns;
    Ap& target = ap(cpu);
    if (target.kick_begin.has_value()) AddUnfinished(Phase::kApStartup);  // a try that failed
    target.kick_begin = e.t_ns;
    target.kick_end.reset();
    target.sipi_sent.reset();
    target.sipi_taken.reset();
  });
}

void Scan::KickEnd(const Event& e) {
  Control& kicker = control(e.cpu);
  if (kicker.kick_begin.has_value()) Add(Phase::kKick, *kicker.kick_begin, e.t_ns);
  kicker.kick_begin.reset();
  ForEachTarget(e, [&](int32_t cpu) { ap(cpu).kick_end = e.t_ns; });
}

void Scan::SipiSent(const Event& e) {
  if (apic::Icr::FromLow(e.value, 0).mode != apic::DeliveryMode::kStartUp) return;
  ForEachTarget(e, [&](int32_t cpu) {
    Ap& target = ap(cpu);
    if (target.kick_begin.has_value() && !target.sipi_sent.has_value()) target.sipi_sent = e.t_ns;
  });
}

void Scan::Alive(const Event& e) {
  if (!times(e.cpu).alive_ns.has_value()) times(e.cpu).alive_ns = e.t_ns;
  Ap& self = ap(e.cpu);
  if (!self.kick_begin.has_value()) return;
  // The kick's begin serves an AP whose SIPI left no trace and that was alive before the kick's
  // end.
  int64_t begin = *self.kick_begin;
  if (self.kick_end.has_value()) begin = *self.kick_end;
  if (self.sipi_sent.has_value()) begin = *self.sipi_sent;
  if (self.sipi_taken.has_value()) begin = *self.sipi_taken;
  Add(Phase::kApStartup, begin, e.t_ns);
  self.kick_begin.reset();
}

void Scan::CloseSpan(std::optional<size_t>& span, int64_t end_ns) {
  if (span.has_value()) out_.cpuhp_spans[*span].end_ns = end_ns;
  span.reset();
}

void Scan::EnterState(const Event& e) {
  if (!IsCpu(e.target)) return;
  const int32_t cpu = e.target;
  const auto state = static_cast<abi::CpuhpState>(e.value);
  CloseSpan(ap(cpu).foreign_span, e.t_ns);
  if (e.cpu == cpu) CloseSpan(ap(cpu).own_span, e.t_ns);
  (e.cpu == cpu ? ap(cpu).own_span : ap(cpu).foreign_span) = out_.cpuhp_spans.size();
  out_.cpuhp_spans.push_back({.cpu = cpu, .state = state, .begin_ns = e.t_ns, .end_ns = e.t_ns});
  if (state != abi::CpuhpState::kApOnlineIdle || e.cpu != cpu) return;
  Ap& self = ap(cpu);
  if (self.released.has_value()) Add(Phase::kStarting, *self.released, e.t_ns);
  self.released.reset();
  self.idle = e.t_ns;
}

void Scan::Online(const Event& e) {
  if (!IsCpu(e.target)) return;
  Ap& target = ap(e.target);
  if (!times(e.target).online_ns.has_value()) times(e.target).online_ns = e.t_ns;
  if (target.idle.has_value()) Add(Phase::kOnline, *target.idle, e.t_ns);
  target.idle.reset();
  CloseSpan(target.own_span, e.t_ns);
  CloseSpan(target.foreign_span, e.t_ns);
}

// What a CPU's own track says of itself.
void Scan::TakeMilestone(const Event& e) {
  if (!IsCpu(e.cpu)) return;
  switch (e.name) {
    case TraceEvent::kBootEntry:
    case TraceEvent::kFirstInstruction:
      if (!times(e.cpu).first_instruction_ns.has_value()) {
        times(e.cpu).first_instruction_ns = e.t_ns;
      }
      if (e.name == TraceEvent::kBootEntry && e.cpu == 0) times(0).online_ns = e.t_ns;
      break;
    case TraceEvent::kSipiDelivered:
      if (ap(e.cpu).kick_begin.has_value() && !ap(e.cpu).sipi_taken.has_value()) {
        ap(e.cpu).sipi_taken = e.t_ns;
      }
      break;
    case TraceEvent::kAlive:
      Alive(e);
      break;
    case TraceEvent::kParked:  // whatever it was in, it has left it
      CloseSpan(ap(e.cpu).own_span, e.t_ns);
      break;
    case TraceEvent::kReleased:
      ap(e.cpu).released = e.t_ns;
      break;
    default:
      break;
  }
}

// What a control CPU, or the VMM in its place, does to others.
void Scan::TakeControl(const Event& e) {
  if (e.cpu != kVmTrack && !IsCpu(e.cpu)) return;
  Control& self = control(e.cpu);
  switch (e.name) {
    case TraceEvent::kKickBegin:
      KickBegin(e);
      break;
    case TraceEvent::kKickEnd:
      KickEnd(e);
      break;
    case TraceEvent::kIcrWrite:
    case TraceEvent::kIpiSent:
      SipiSent(e);
      break;
    case TraceEvent::kWaitAliveBegin:
      if (self.wait_begin.has_value()) AddUnfinished(Phase::kWaitAlive);
      self.wait_begin = e.t_ns;
      break;
    case TraceEvent::kWaitAliveEnd:
    case TraceEvent::kTimeout:  // a wait may also end by giving up
      if (self.wait_begin.has_value()) Add(Phase::kWaitAlive, *self.wait_begin, e.t_ns);
      self.wait_begin.reset();
      break;
    default:
      break;
  }
}

void Scan::Take(const Event& e) {
  switch (e.name) {
    case TraceEvent::kHotplugBegin:
      if (after_boot_ || !out_.smpboot_ns.has_value()) break;
      CountUnfinished();
      after_boot_ = true;
      break;
    case TraceEvent::kSmpbootBegin:
      if (!out_.smpboot_begin_ns.has_value()) out_.smpboot_begin_ns = e.t_ns;
      break;
    case TraceEvent::kSmpbootEnd:
      if (out_.smpboot_begin_ns.has_value() && !out_.smpboot_ns.has_value()) {
        out_.smpboot_ns = e.t_ns - *out_.smpboot_begin_ns;
      }
      break;
    case TraceEvent::kCpuhpEnter:
      EnterState(e);
      break;
    case TraceEvent::kOnline:
      Online(e);
      break;
    default:
      TakeMilestone(e);
      TakeControl(e);
      break;
  }
}

// The time from `begin_ns` to `end_ns` that lies in no interval of any phase.
int64_t Scan::OutsidePhases(int64_t begin_ns, int64_t end_ns) const {
  std::vector<Interval> within;
  for (const std::vector<Interval>& phase : intervals_) {
    for (const Interval& interval : phase) {
      const Interval cut = {std::max(interval.begin_ns, begin_ns),
                            std::min(interval.end_ns, end_ns)};
      if (cut.begin_ns < cut.end_ns) within.push_back(cut);
    }
  }
  return end_ns - begin_ns - UnionLength(std::move(within));
}

void Scan::CountUnfinished() {
  for (const Ap& target : aps_) {
    if (target.kick_begin.has_value()) AddUnfinished(Phase::kApStartup);
    if (target.released.has_value()) AddUnfinished(Phase::kStarting);
    if (target.idle.has_value()) AddUnfinished(Phase::kOnline);
  }
  for (const Control& c : controls_) {
    if (c.kick_begin.has_value()) AddUnfinished(Phase::kKick);
    if (c.wait_begin.has_value()) AddUnfinished(Phase::kWaitAlive);
  }
}

Analysis Scan::Finish(int64_t end_ns) {
  if (out_.smpboot_ns.has_value()) {
    const int64_t begin_ns = *out_.smpboot_begin_ns;
    out_.other_ns = OutsidePhases(begin_ns, begin_ns + *out_.smpboot_ns);
  }
  CountUnfinished();
  for (const Ap& target : aps_) {
    for (const std::optional<size_t>& open : {target.own_span, target.foreign_span}) {
      if (!open.has_value()) continue;
      out_.cpuhp_spans[*open].end_ns = end_ns;
      out_.cpuhp_spans[*open].finished = false;
    }
  }
  for (size_t i = 0; i < kPhaseCount; ++i) {
    PhaseTimes& phase = out_.phases[i];
    std::vector<int64_t> lengths;
    for (const Interval& interval : intervals_[i]) {
      lengths.push_back(interval.end_ns - interval.begin_ns);
      phase.sum_ns += lengths.back();
    }
    phase.intervals = static_cast<uint32_t>(lengths.size());
    if (const auto summary = Summarize(std::move(lengths))) phase.median_ns = summary->median;
    phase.wall_ns = UnionLength(std::move(intervals_[i]));
  }
  for (const CpuTimes& cpu : out_.cpus) {
    if (cpu.online_ns.has_value()) ++out_.cpus_online;
  }
  return std::move(out_);
}

}  // namespace

const char* Name(Phase phase) {
  switch (phase) {
    case Phase::kKick:
      return "kick";
    case Phase::kApStartup:
      return "ap_startup";
    case Phase::kWaitAlive:
      return "wait_alive";
    case Phase::kStarting:
      return "starting";
    case Phase::kOnline:
      return "online";
  }
  return "?";
}

Analysis Analyze(const RunRecord& record) {
  Scan scan(record.cpus_offered);
  for (const Event& event : record.events) scan.Take(event);
  return scan.Finish(record.events.empty() ? 0 : record.events.back().t_ns);
}

}  // namespace sipi
