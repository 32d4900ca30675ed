#include "vmm/report/trace_spans.h"

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "vmm/report/service_spans.h"
#include "vmm/timeline/analysis.h"
#include "vmm/timeline/event_info.h"

namespace sipi {
namespace {

using abi::TraceEvent;

// Pairs of events that begin and end a span on the track they stand on.
struct PairKind {
  TraceEvent begin;
  TraceEvent end;
  const char* category;
  const char* name;
};
constexpr std::array<PairKind, 8> kPairs = {{
    {TraceEvent::kSmpbootBegin, TraceEvent::kSmpbootEnd, "control", "smpboot"},
    {TraceEvent::kPassBegin, TraceEvent::kPassEnd, "control", "pass"},
    {TraceEvent::kKickBegin, TraceEvent::kKickEnd, "control", "kick"},
    {TraceEvent::kWaitAliveBegin, TraceEvent::kWaitAliveEnd, "control", "wait-alive"},
    {TraceEvent::kTscCheckBegin, TraceEvent::kTscCheckEnd, "control", "tsc-check"},
    {TraceEvent::kCalibrateBegin, TraceEvent::kCalibrateEnd, "own", "calibrate"},
    {TraceEvent::kImposedBegin, TraceEvent::kImposedEnd, "own", "imposed"},
    {TraceEvent::kStolenBegin, TraceEvent::kStolenEnd, "own", "stolen"},
}};

// Index in kPairs of the kind that `event` begins or ends.
std::optional<size_t> PairOf(TraceEvent event) {
  for (size_t i = 0; i < kPairs.size(); ++i) {
    if (event == kPairs[i].begin || event == kPairs[i].end) return i;
  }
  return std::nullopt;
}

std::string TargetArg(uint16_t target) {
  return target == abi::kAllTargets ? "\"target\":\"all\"" : absl::StrCat("\"target\":", target);
}

class TrackBuilder {
 public:
  explicit TrackBuilder(const RunRecord& record)
      : record_(record),
        end_ns_(record.events.empty() ? 0 : record.events.back().t_ns),
        handshakes_(record.cpus_offered) {
    tracks_[kVmTrack];
    for (uint32_t cpu = 0; cpu < record.cpus_offered; ++cpu) tracks_[static_cast<int32_t>(cpu)];
  }

  std::map<int32_t, TraceTrack> Build() {
    AddCpuhpStates();
    for (const Event& event : record_.events) {
      TakeHandshake(event);
      TakeOther(event);
    }
    for (auto& [cpu, opens] : open_pairs_) {
      for (size_t kind = 0; kind < kPairs.size(); ++kind) ClosePair(cpu, kind, end_ns_, false);
    }
    for (uint32_t cpu = 0; cpu < record_.cpus_offered; ++cpu) {
      Handshake(static_cast<int32_t>(cpu), nullptr, end_ns_);
    }
    for (auto& [cpu, track] : tracks_) track.spans = NestSpans(std::move(track.spans));
    return std::move(tracks_);
  }

 private:
  struct OpenHandshake {
    const char* state = nullptr;  // null: dead, which is not shown
    int64_t begin_ns = 0;
  };
  using OpenPairs = std::array<const Event*, kPairs.size()>;

  bool IsCpu(int32_t cpu) const {
    return cpu >= 0 && static_cast<size_t>(cpu) < handshakes_.size();
  }

  void AddCpuhpStates() {
    for (const CpuhpSpan& state : Analyze(record_).cpuhp_spans) {
      Span span = {.begin_ns = state.begin_ns,
                   .end_ns = state.end_ns,
                   .name = abi::Name(state.state),
                   .category = "cpuhp",
                   .args = absl::StrCat("\"state\":", static_cast<uint32_t>(state.state))};
      // The end of the run ends a final state in order, and any other one too early.
      span.finished = state.finished || state.state == abi::CpuhpState::kOnline;
      tracks_[state.cpu].spans.push_back(std::move(span));
    }
  }

  // Ends what `cpu` was in and begins `state` (null: nothing that is shown).
  void Handshake(int32_t cpu, const char* state, int64_t t_ns) {
    OpenHandshake& open = handshakes_[static_cast<size_t>(cpu)];
    if (open.state != nullptr) {
      tracks_[cpu].spans.push_back(
          {.begin_ns = open.begin_ns, .end_ns = t_ns, .name = open.state, .category = "handshake"});
    }
    open = {.state = state, .begin_ns = t_ns};
  }

  // Whether `cpu` is in `state` (by the pointer-free comparison of short names).
  bool InState(int32_t cpu, abi::SyncState state) const {
    const char* open = handshakes_[static_cast<size_t>(cpu)].state;
    return open != nullptr && std::string_view(open) == abi::Name(state);
  }

  void TakeHandshake(const Event& event) {
    using abi::SyncState;
    const auto move = [&](int32_t cpu, SyncState to) { Handshake(cpu, abi::Name(to), event.t_ns); };
    const int32_t target = event.target;
    switch (event.name) {
      case TraceEvent::kKickBegin:
        if (event.target != abi::kAllTargets) {
          if (IsCpu(target)) move(target, SyncState::kKicked);
          return;
        }
        for (int32_t cpu = 1; IsCpu(cpu); ++cpu) {
          if (cpu != event.cpu) move(cpu, SyncState::kKicked);
        }
        return;
      case TraceEvent::kAlive:
        if (IsCpu(event.cpu)) move(event.cpu, SyncState::kAlive);
        return;
      case TraceEvent::kRelease:  // written by the control CPU, or by the AP itself
        if (IsCpu(target) && InState(target, SyncState::kAlive)) {
          move(target, SyncState::kShouldOnline);
        }
        return;
      case TraceEvent::kReleased:
        if (IsCpu(event.cpu) && InState(event.cpu, SyncState::kAlive)) {
          move(event.cpu, SyncState::kShouldOnline);
        }
        return;
      case TraceEvent::kCpuhpEnter:
        if (event.value == static_cast<uint32_t>(abi::CpuhpState::kApOnlineIdle) && IsCpu(target) &&
            event.cpu == target) {
          move(target, SyncState::kOnline);
        }
        return;
      case TraceEvent::kTimeout:
        if (IsCpu(target)) move(target, SyncState::kShouldDie);
        return;
      case TraceEvent::kCancelled:
        if (IsCpu(event.cpu)) move(event.cpu, SyncState::kShouldDie);
        return;
      case TraceEvent::kStepFailed:
        if (IsCpu(target) && event.cpu == target) move(target, SyncState::kShouldDie);
        return;
      case TraceEvent::kParked:
        if (IsCpu(event.cpu)) Handshake(event.cpu, nullptr, event.t_ns);
        return;
      default:
        return;
    }
  }

  void TakeOther(const Event& event) {
    const std::optional<size_t> kind = PairOf(event.name);
    if (!kind.has_value()) {
      if (event.name != TraceEvent::kCpuhpEnter) tracks_[event.cpu].instants.push_back(&event);
      return;
    }
    if (event.name == kPairs[*kind].begin) {
      ClosePair(event.cpu, *kind, event.t_ns, false);
      open_pairs_[event.cpu][*kind] = &event;
    } else if (open_pairs_[event.cpu][*kind] == nullptr) {
      tracks_[event.cpu].instants.push_back(&event);
    } else {
      ClosePair(event.cpu, *kind, event.t_ns, true);
    }
  }

  void ClosePair(int32_t cpu, size_t kind, int64_t t_ns, bool finished) {
    const Event* begin = std::exchange(open_pairs_[cpu][kind], nullptr);
    if (begin == nullptr) return;
    Span span = {.begin_ns = begin->t_ns,
                 .end_ns = t_ns,
                 .name = kPairs[kind].name,
                 .category = kPairs[kind].category,
                 .finished = finished};
    if (InfoOf(begin->name).has_target) span.args = TargetArg(begin->target);
    if (begin->name == TraceEvent::kPassBegin) absl::StrAppend(&span.name, " ", begin->value);
    if (begin->name == TraceEvent::kImposedBegin) {
      absl::StrAppend(&span.name, ": ", ChargeName(begin->value));
    }
    tracks_[cpu].spans.push_back(std::move(span));
  }

  const RunRecord& record_;
  const int64_t end_ns_;
  std::map<int32_t, TraceTrack> tracks_;
  std::vector<OpenHandshake> handshakes_;
  std::map<int32_t, OpenPairs> open_pairs_;
};

}  // namespace

std::map<int32_t, TraceTrack> TraceTracks(const RunRecord& record) {
  std::map<int32_t, TraceTrack> tracks = TrackBuilder(record).Build();
  AddServiceTracks(record, tracks);
  return tracks;
}

}  // namespace sipi
