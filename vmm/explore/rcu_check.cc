// What must hold at the end of a run that explored RCU.
#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "vmm/explore/rcu_case.h"
#include "vmm/explore/remains.h"

namespace sipi {
namespace {

using abi::TraceEvent;

struct Seen {
  uint32_t cpu;
  abi::TraceRecord record;
};

// Of all CPUs, in time.
std::vector<Seen> EventsOf(const Remains& remains) {
  std::vector<Seen> events;
  for (uint32_t cpu = 0; cpu < remains.cpus(); ++cpu) {
    for (const abi::TraceRecord& record : remains.ring(cpu)) events.push_back({cpu, record});
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const Seen& a, const Seen& b) { return a.record.tsc < b.record.tsc; });
  return events;
}

// Readers last some milliseconds each and a handful are in a grace period's way; a stall holds each
// up by 20 ms at most.
constexpr uint64_t kLongestGpMs = 2'000;
constexpr uint64_t kTicksPerMs = 2'000'000;  // the simulator's TSC: 2 GHz

std::string TooLong(const char* what, uint64_t ticks) {
  if (ticks <= kLongestGpMs * kTicksPerMs) return "";
  return absl::StrCat(what, " took ", ticks / kTicksPerMs,
                      " ms: a wake-up was lost, or it waited for "
                      "somebody who is not there");
}

std::string CheckGracePeriods(const std::vector<Seen>& events, uint64_t end_ticks) {
  uint64_t normal = 0;  // when the one that runs began; 0: none
  uint64_t expedited = 0;
  for (const Seen& seen : events) {
    const abi::TraceRecord& record = seen.record;
    std::string wrong;
    switch (record.event) {
      case TraceEvent::kGpBegin:
        normal = record.tsc;
        break;
      case TraceEvent::kExpBegin:
        if (expedited != 0) return "two expedited grace periods run at once";
        expedited = record.tsc;
        break;
      case TraceEvent::kGpEnd:
        wrong = TooLong("a grace period", record.tsc - normal);
        normal = 0;
        break;
      case TraceEvent::kExpEnd:
        wrong = TooLong("an expedited grace period", record.tsc - expedited);
        expedited = 0;
        break;
      case TraceEvent::kRcuStall:
        return absl::StrCat("CPU ", record.target, " is said to stall a grace period");
      case TraceEvent::kGpStarved:
        return absl::StrCat("the grace-period kthread does not run, on CPU ", record.target);
      case TraceEvent::kExpediteNesting:
        if (record.value == ~0u) return "rcu_unexpedite_gp() was called once too often";
        break;
      default:
        break;
    }
    if (!wrong.empty()) return wrong;
  }
  std::string wrong;
  if (normal != 0) wrong = TooLong("a grace period that never ended", end_ticks - normal);
  if (expedited != 0) {
    wrong = TooLong("an expedited grace period that never ended", end_ticks - expedited);
  }
  return wrong;
}

std::string CheckCpus(const Remains& remains) {
  for (uint32_t cpu = 0; cpu < remains.cpus(); ++cpu) {
    const abi::CpuSlot& slot = remains.slot(cpu);
    if (slot.online == 0) {
      return absl::StrCat("CPU ", cpu, " is not online at the end (",
                          remains.simulator().Doing(CpuNumber(cpu)), ")");
    }
    if (slot.cpuhp_state != static_cast<uint32_t>(abi::CpuhpState::kOnline)) {
      return absl::StrCat("CPU ", cpu, " is online in state ", slot.cpuhp_state);
    }
  }
  const uint32_t counted = remains.result().cpus_online;
  if (counted == remains.cpus()) return "";
  return absl::StrCat(counted, " CPUs were counted, ", remains.cpus(), " are online");
}

}  // namespace

std::string CheckRcuRun(const ExploreCase& explored, const ArenaLayout& arena,
                        const sim::Simulator& simulator, const sim::End& end) {
  const Remains remains(explored, arena, simulator);
  std::string wrong = CheckEnd(remains, end);
  if (!wrong.empty()) return wrong;
  const std::vector<Seen> events = EventsOf(remains);
  wrong = CheckGracePeriods(events, events.empty() ? 0 : events.back().record.tsc);
  return wrong.empty() ? CheckCpus(remains) : wrong;
}

}  // namespace sipi
