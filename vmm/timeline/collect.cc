#include "vmm/timeline/collect.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "vmm/timeline/event_info.h"

namespace sipi {
namespace {

// The wide type keeps ticks * 10^6 from overflowing: 2^63 ticks would, after an hour already.
__extension__ using Wide = __int128;

// A record with its time on the host's TSC. Ticks are compared as differences from one origin, so a
// counter that wraps between two records does no harm.
struct Placed {
  int64_t ticks = 0;  // since the origin
  Event event;
};

int64_t ToNs(int64_t ticks, uint64_t tsc_khz) {
  const Wide ns = Wide{ticks} * 1'000'000 / static_cast<Wide>(tsc_khz);
  constexpr Wide kMax = std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(std::min(ns, kMax));
}

int64_t TicksSince(uint64_t origin, uint64_t tsc) { return static_cast<int64_t>(tsc - origin); }

// The guest writes its ring itself; what is not a guest event is no record at all.
bool IsGuestRecord(const abi::TraceRecord& record) {
  return record.tsc != 0 && record.event < abi::TraceEvent::kHostFirst && IsEvent(record.event);
}

// The word that is written last is not there (guest/abi/trace.h).
bool IsUnfinished(const abi::TraceRecord& record) {
  return record.event == abi::TraceEvent::kNone && record.target == 0;
}

enum class Verdict : uint8_t { kEvent, kUnfinished, kLost };

Verdict OfHost(const abi::TraceRecord&) { return Verdict::kEvent; }

Verdict OfGuest(const abi::TraceRecord& record) {
  if (IsUnfinished(record)) return Verdict::kUnfinished;
  return IsGuestRecord(record) ? Verdict::kEvent : Verdict::kLost;
}

class Collector {
 public:
  Collector(const TscClock& clock, uint64_t origin) : clock_(clock), origin_(origin) {}

  // Appends one track. Within it the order of the records stands, whatever their times say.
  template <class Judge>
  void AddTrack(int32_t cpu, std::span<const abi::TraceRecord> records, uint64_t tsc_offset,
                Judge judge) {
    int64_t latest = 0;
    for (const abi::TraceRecord& record : records) {
      const Verdict verdict = judge(record);
      if (verdict != Verdict::kEvent) {
        ++(verdict == Verdict::kUnfinished ? timeline_.unfinished : timeline_.lost);
        continue;
      }
      const int64_t ticks = TicksSince(origin_, record.tsc - tsc_offset);
      if (ticks < latest) ++timeline_.adjusted;
      latest = std::max(latest, ticks);
      placed_.push_back(
          {latest,
           {.cpu = cpu, .name = record.event, .target = record.target, .value = record.value}});
    }
  }

  void AddLost(uint64_t count) { timeline_.lost += count; }

  Timeline Finish() {
    std::stable_sort(placed_.begin(), placed_.end(),
                     [](const Placed& a, const Placed& b) { return a.ticks < b.ticks; });
    timeline_.events.reserve(placed_.size());
    const int64_t first = placed_.empty() ? 0 : placed_.front().ticks;
    for (Placed& p : placed_) {
      p.event.t_ns = ToNs(p.ticks - first, clock_.tsc_khz);
      timeline_.events.push_back(p.event);
    }
    return std::move(timeline_);
  }

  void Reserve(size_t records) { placed_.reserve(records); }

 private:
  const TscClock clock_;
  const uint64_t origin_;
  std::vector<Placed> placed_;
  Timeline timeline_;
};

// The earliest time of the run: the host's first event (nothing of the guest can be older), or the
// guest's without one.
uint64_t FindOrigin(std::span<const GuestRing> rings, std::span<const HostTrack> tracks,
                    uint64_t tsc_offset) {
  std::optional<uint64_t> origin;
  const auto take = [&origin](uint64_t tsc) {
    if (!origin.has_value() || TicksSince(*origin, tsc) < 0) origin = tsc;
  };
  for (const HostTrack& track : tracks) {
    if (!track.log->records().empty()) take(track.log->records().front().tsc);
  }
  if (origin.has_value()) return *origin;
  for (const GuestRing& ring : rings) {
    const auto first = std::find_if(ring.records.begin(), ring.records.end(), IsGuestRecord);
    if (first != ring.records.end()) take(first->tsc - tsc_offset);
  }
  return origin.value_or(0);
}

}  // namespace

Timeline Collect(std::span<const GuestRing> rings, std::span<const HostTrack> tracks,
                 const TscClock& clock) {
  const auto guest_offset = static_cast<uint64_t>(clock.guest_minus_host);
  Collector collector(clock, FindOrigin(rings, tracks, guest_offset));
  size_t records = 0;
  for (const HostTrack& track : tracks) records += track.log->records().size();
  for (const GuestRing& ring : rings) records += ring.records.size();
  collector.Reserve(records);
  // Host first: where both have the same time, the host's event (SIPI taken) came before the
  // guest's (first instruction).
  for (const HostTrack& track : tracks) {
    collector.AddTrack(track.cpu, track.log->records(), 0, OfHost);
    collector.AddLost(track.log->lost());
  }
  for (const GuestRing& ring : rings) {
    collector.AddTrack(ring.cpu, ring.records, guest_offset, OfGuest);
    collector.AddLost(ring.lost);
  }
  return collector.Finish();
}

}  // namespace sipi
