#include "vmm/report/service_spans.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "vmm/timeline/scenario_names.h"
#include "vmm/timeline/service_analysis.h"

namespace sipi {
namespace {

using abi::TraceEvent;

void AddGracePeriods(const RunRecord& record, int64_t end_ns,
                     std::map<int32_t, TraceTrack>& tracks) {
  for (const GracePeriod& each : GracePeriods(record)) {
    std::vector<Span>& spans = tracks[each.expedited ? kExpeditedTrack : kRcuTrack].spans;
    const int64_t until = each.end_ns.value_or(end_ns);
    const bool finished = each.end_ns.has_value();
    const int64_t ready = each.ready_ns.value_or(until);
    spans.push_back(
        {.begin_ns = each.begin_ns,
         .end_ns = until,
         .name = absl::StrCat("grace period ", each.sequence),
         .category = "rcu",
         .args = absl::StrCat("\"cpu\":", each.cpu, ",\"scans\":", each.scans_ns.size()),
         .finished = finished});
    spans.push_back({.begin_ns = each.begin_ns,
                     .end_ns = ready,
                     .name = each.expedited ? "select" : "init",
                     .category = "rcu",
                     .finished = each.ready_ns.has_value()});
    if (!each.ready_ns.has_value()) continue;
    spans.push_back({.begin_ns = ready,
                     .end_ns = until,
                     .name = "wait",
                     .category = "rcu",
                     .finished = finished});
  }
  if (!tracks.contains(kRcuTrack)) return;
  for (const Event& event : record.events) {
    if (event.name == TraceEvent::kGpFqs) tracks[kRcuTrack].instants.push_back(&event);
  }
}

void AddSwitches(const RunRecord& record, int64_t end_ns, std::vector<Span>& spans) {
  for (const SmtSwitch& each : SmtSwitches(record)) {
    spans.push_back(
        {.begin_ns = each.begin_ns,
         .end_ns = each.ns.has_value() ? each.begin_ns + *each.ns : end_ns,
         .name = absl::StrCat("smt ", each.off ? "off: " : "on: ", Name(each.approach)),
         .category = "hotplug",
         .args = absl::StrCat("\"threads\":", each.threads, ",\"failed\":", each.failed),
         .finished = each.ns.has_value()});
  }
}

void AddOperations(const RunRecord& record, int64_t end_ns, std::vector<Span>& spans) {
  for (const HotplugOperation& each : HotplugOperations(record)) {
    spans.push_back({.begin_ns = each.asked_ns,
                     .end_ns = each.ns.has_value() ? each.asked_ns + *each.ns : end_ns,
                     .name = absl::StrCat("CPU ", each.cpu, each.up ? " on" : " off"),
                     .category = "hotplug",
                     .args = absl::StrCat("\"error\":", each.error),
                     .finished = each.ns.has_value()});
  }
}

void AddWriteLock(const RunRecord& record, int64_t end_ns, std::vector<Span>& spans) {
  std::optional<int64_t> wanted;
  std::optional<int64_t> held;
  const auto close = [&spans](std::optional<int64_t>& since, int64_t t_ns, const char* name,
                              bool finished) {
    if (!since.has_value()) return;
    spans.push_back({.begin_ns = *since,
                     .end_ns = t_ns,
                     .name = name,
                     .category = "hotplug",
                     .finished = finished});
    since.reset();
  };
  for (const Event& event : record.events) {
    if (event.name == TraceEvent::kCpusWriteLock) {
      // Who waits behind another is not told from it.
      if (!wanted.has_value()) wanted = event.t_ns;
    } else if (event.name == TraceEvent::kCpusWriteLocked) {
      close(wanted, event.t_ns, "write lock wanted", true);
      held = event.t_ns;
    } else if (event.name == TraceEvent::kCpusWriteUnlock) {
      close(held, event.t_ns, "write lock", true);
    }
  }
  close(wanted, end_ns, "write lock wanted", false);
  close(held, end_ns, "write lock", false);
}

}  // namespace

const char* ServiceTrackName(int32_t track) {
  switch (track) {
    case kRcuTrack:
      return "RCU";
    case kExpeditedTrack:
      return "RCU expedited";
    case kHotplugTrack:
      return "hotplug";
    default:
      return nullptr;
  }
}

void AddServiceTracks(const RunRecord& record, std::map<int32_t, TraceTrack>& tracks) {
  if (record.events.empty()) return;
  const int64_t end_ns = record.events.back().t_ns;
  AddGracePeriods(record, end_ns, tracks);
  std::vector<Span> spans;
  AddSwitches(record, end_ns, spans);
  AddOperations(record, end_ns, spans);
  AddWriteLock(record, end_ns, spans);
  if (!spans.empty()) tracks[kHotplugTrack].spans = std::move(spans);
  for (const int32_t track : {kRcuTrack, kExpeditedTrack, kHotplugTrack}) {
    const auto found = tracks.find(track);
    if (found != tracks.end()) found->second.spans = NestSpans(std::move(found->second.spans));
  }
}

}  // namespace sipi
