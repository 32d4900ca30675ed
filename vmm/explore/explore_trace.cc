// A run's last events, for people.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "vmm/explore/explore_check.h"
#include "vmm/explore/remains.h"

namespace sipi {
namespace {

using abi::TraceEvent;

struct Told {
  int32_t cpu;  // -1: the machine
  abi::TraceRecord record;
  bool undoing;  // kCpuhpEnter on the way down
};

std::vector<Told> EventsOf(const Remains& remains) {
  std::vector<Told> events;
  for (const sim::HostRecord& each : remains.simulator().host_records()) {
    events.push_back({each.cpu, each.record, false});
  }
  for (uint32_t cpu = 0; cpu < remains.cpus(); ++cpu) {
    std::map<uint16_t, uint32_t> at;  // by CPU that moves
    for (const abi::TraceRecord& record : remains.ring(cpu)) {
      bool undoing = false;
      if (record.event == TraceEvent::kCpuhpEnter) {
        undoing = record.value < std::exchange(at[record.target], record.value);
      }
      events.push_back({static_cast<int32_t>(cpu), record, undoing});
    }
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const Told& a, const Told& b) { return a.record.tsc < b.record.tsc; });
  return events;
}

std::string IcrText(uint32_t bits) {
  static constexpr const char* kModes[] = {"fixed", "lowest", "SMI",  "3",
                                           "NMI",   "INIT",   "SIPI", "7"};
  const uint32_t mode = bits >> 8 & 7;
  const bool deassert = mode == 5 && (bits & 1u << 14) == 0;
  static constexpr const char* kShorthands[] = {"", ", self", ", all", ", all but self"};
  return absl::StrFormat(" %s%s, vector 0x%x%s", kModes[mode], deassert ? " de-assert" : "",
                         bits & 0xff, kShorthands[bits >> 18 & 3]);
}

// A record's value, as its event means it.
std::string ValueText(const Told& told) {
  const abi::TraceRecord& record = told.record;
  switch (record.event) {
    case TraceEvent::kCpuhpEnter:
    case TraceEvent::kHotplugBegin:
    case TraceEvent::kStepFailed:
      return absl::StrCat(" ", abi::Name(static_cast<abi::CpuhpState>(record.value)),
                          told.undoing ? " (undone down to here)" : "");
    case TraceEvent::kTimeout:
      return absl::StrCat(" ", abi::Name(static_cast<abi::SyncState>(record.value)));
    case TraceEvent::kIcrWrite:
      return IcrText(record.value);
    case TraceEvent::kScenario:
      if (record.value == abi::kMarkSettle) return " the faults end here";
      break;
    default:
      break;
  }
  return record.value != 0 ? absl::StrFormat(" 0x%x", record.value) : "";
}

}  // namespace

std::string LastEvents(const ExploreCase& explored, const ArenaLayout& arena,
                       const sim::Simulator& simulator, size_t count) {
  const Remains remains(explored, arena, simulator);
  const std::vector<Told> events = EventsOf(remains);
  std::string text;
  const size_t skipped = events.size() > count ? events.size() - count : 0;
  if (skipped != 0) absl::StrAppend(&text, "  (", skipped, " events before)\n");
  const uint64_t origin = events.empty() ? 0 : events.front().record.tsc;
  for (size_t i = skipped; i < events.size(); ++i) {
    const Told& told = events[i];
    const uint64_t ns = (told.record.tsc - origin) / 2;  // the simulator's TSC: 2 GHz
    absl::StrAppendFormat(&text, "  %10.3f us  %s  %-18s", static_cast<double>(ns) / 1e3,
                          told.cpu < 0 ? "     " : absl::StrFormat("CPU %d", told.cpu),
                          abi::Name(told.record.event));
    if (told.record.target != 0) absl::StrAppend(&text, " target ", told.record.target);
    absl::StrAppend(&text, ValueText(told), "\n");
  }
  return text;
}

}  // namespace sipi
