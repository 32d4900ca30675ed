#include "vmm/explore/explore_check.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "guest/abi/percpu.h"
#include "vmm/explore/rcu_case.h"
#include "vmm/explore/remains.h"

namespace sipi {
namespace {

using abi::TraceEvent;

std::string CheckCpu(const Remains& remains, uint32_t cpu) {
  const abi::CpuSlot& slot = remains.slot(cpu);
  const std::string name = absl::StrCat("CPU ", cpu);
  if (slot.online != 0 && slot.error != 0 && !remains.harmed(cpu)) {
    return absl::StrCat(name, " failed and counts as online");
  }
  if (remains.harmed(cpu)) return "";
  if (slot.online == 0) {
    return absl::StrCat(name, ", which nothing was done to, is not online (",
                        remains.simulator().Doing(CpuNumber(cpu)), ")");
  }
  if (slot.cpuhp_state != static_cast<uint32_t>(abi::CpuhpState::kOnline)) {
    return absl::StrCat(name, " is online in state ", slot.cpuhp_state);
  }
  if (cpu == 0) return "";
  uint32_t last = 0;
  uint32_t steps = 0;
  for (const abi::TraceRecord& record : remains.ring(cpu)) {
    if (record.event != TraceEvent::kCpuhpEnter || record.target != cpu) continue;
    if (record.value <= last) {
      return absl::StrCat(name, " entered state ", record.value, " after ", last);
    }
    last = record.value;
    ++steps;
  }
  constexpr uint32_t kOwnSteps = 9;  // from ap:offline to sched:active
  if (steps == kOwnSteps) return "";
  return absl::StrCat(name, " took ", steps, " steps of its own, not ", kOwnSteps);
}

std::string CheckCounts(const Remains& remains) {
  const abi::ResultPage& result = remains.result();
  uint32_t online = 0;
  uint32_t in_cores = 0;
  uint32_t in_packages = 0;
  uint32_t must_answer = 0;
  for (uint32_t cpu = 0; cpu < remains.cpus(); ++cpu) {
    online += remains.slot(cpu).online;
    in_cores += remains.slot(cpu).core_cpus;
    in_packages += remains.slot(cpu).package_cpus;
    must_answer += cpu != 0 && remains.slot(cpu).online != 0 && !remains.harmed(cpu) ? 1u : 0u;
  }
  const bool asked = remains.explored().config.scenario == abi::Scenario::kIpiAll;
  if (asked && result.ipi_answers < must_answer) {
    return absl::StrCat(result.ipi_answers, " of ", must_answer, " CPUs answered their IPI");
  }
  if (remains.unsettled()) return "";  // who died or is late counts as far as it came
  if (result.cpus_online != online) {
    return absl::StrCat(result.cpus_online, " CPUs were counted, ", online, " are online");
  }
  if (in_cores != online || in_packages != online) {
    return absl::StrCat("cores hold ", in_cores, " CPUs, packages ", in_packages, ", of ", online);
  }
  if (result.trampoline_lock != 0) {
    return absl::StrCat("the trampoline's lock is held; CPU ", result.trampoline_holder,
                        " took it last");
  }
  return "";
}

struct Interval {
  uint64_t begin;
  uint64_t end;
  uint32_t cpu;
};

std::string CheckTscChecks(const Remains& remains) {
  std::vector<Interval> checks;
  for (uint32_t cpu = 1; cpu < remains.cpus(); ++cpu) {
    uint64_t begin = 0;
    for (const abi::TraceRecord& record : remains.ring(cpu)) {
      if (record.event == TraceEvent::kTscCheckBegin) begin = record.tsc;
      if (record.event == TraceEvent::kTscCheckEnd) checks.push_back({begin, record.tsc, cpu});
    }
  }
  std::sort(checks.begin(), checks.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < checks.size(); ++i) {
    if (checks[i].begin >= checks[i - 1].end) continue;
    return absl::StrCat("TSC checks of CPUs ", checks[i - 1].cpu, " and ", checks[i].cpu,
                        " overlap");
  }
  return "";
}

std::string CheckSiblings(const Remains& remains) {
  const RunConfig& config = remains.explored().config;
  if (config.strategy.id != sequence::StrategyId::kPrimaryFirst) return "";
  uint64_t first_sibling_kick = ~uint64_t{0};
  for (const abi::TraceRecord& record : remains.ring(0)) {
    if (record.event != TraceEvent::kKickBegin || record.target >= remains.cpus()) continue;
    if (config.topology.places[record.target].thread == 0) continue;
    first_sibling_kick = std::min(first_sibling_kick, record.tsc);
  }
  for (uint32_t cpu = 1; cpu < remains.cpus(); ++cpu) {
    if (config.topology.places[cpu].thread != 0 || remains.harmed(cpu)) continue;
    for (const abi::TraceRecord& record : remains.ring(cpu)) {
      if (record.event == TraceEvent::kAlive && record.tsc > first_sibling_kick) {
        return absl::StrCat("a sibling was kicked before CPU ", cpu, ", a primary, was alive");
      }
    }
  }
  return "";
}

}  // namespace

std::string CheckRun(const ExploreCase& explored, const ArenaLayout& arena,
                     const sim::Simulator& simulator, const sim::End& end) {
  if (ExploresRcu(explored)) return CheckRcuRun(explored, arena, simulator, end);
  const Remains remains(explored, arena, simulator);
  std::string wrong = CheckEnd(remains, end);
  if (!wrong.empty()) return wrong;
  for (uint32_t cpu = 0; cpu < remains.cpus(); ++cpu) {
    wrong = CheckCpu(remains, cpu);
    if (!wrong.empty()) return wrong;
  }
  for (const auto check : {CheckCounts, CheckTscChecks, CheckSiblings}) {
    wrong = check(remains);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

std::string LastEvents(const ExploreCase& explored, const ArenaLayout& arena,
                       const sim::Simulator& simulator, size_t count) {
  const Remains remains(explored, arena, simulator);
  std::vector<std::pair<int32_t, abi::TraceRecord>> events;
  for (const sim::HostRecord& each : simulator.host_records()) {
    events.emplace_back(each.cpu, each.record);
  }
  for (uint32_t cpu = 0; cpu < explored.config.cpus; ++cpu) {
    for (const abi::TraceRecord& record : remains.ring(cpu)) {
      events.emplace_back(static_cast<int32_t>(cpu), record);
    }
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const auto& a, const auto& b) { return a.second.tsc < b.second.tsc; });
  std::string text;
  const size_t skipped = events.size() > count ? events.size() - count : 0;
  if (skipped != 0) absl::StrAppend(&text, "  (", skipped, " events before)\n");
  const uint64_t origin = events.empty() ? 0 : events.front().second.tsc;
  for (size_t i = skipped; i < events.size(); ++i) {
    const auto& [cpu, record] = events[i];
    const uint64_t ns = (record.tsc - origin) / 2;  // the simulator's TSC: 2 GHz
    absl::StrAppendFormat(&text, "  %10.3f us  %s  %-18s", static_cast<double>(ns) / 1e3,
                          cpu < 0 ? "     " : absl::StrFormat("CPU %d", cpu),
                          abi::Name(record.event));
    if (record.target != 0) absl::StrAppend(&text, " target ", record.target);
    const bool states =
        record.event == TraceEvent::kCpuhpEnter || record.event == TraceEvent::kHotplugBegin;
    if (states) {
      absl::StrAppend(&text, " ", abi::Name(static_cast<abi::CpuhpState>(record.value)));
    } else if (record.value != 0) {
      absl::StrAppendFormat(&text, " 0x%x", record.value);
    }
    text += '\n';
  }
  return text;
}

}  // namespace sipi
