#include "vmm/explore/explore_check.h"

#include <algorithm>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "guest/abi/percpu.h"
#include "vmm/explore/rcu_case.h"
#include "vmm/explore/remains.h"

namespace sipi {
namespace {

using abi::TraceEvent;

// Who failed says so, and does not count as online.
std::string CheckFailed(const Remains& remains, uint32_t cpu) {
  const abi::CpuSlot& slot = remains.slot(cpu);
  const auto sync = static_cast<abi::SyncState>(slot.sync_state);
  if (slot.online == 0 && slot.error == 0) {
    return absl::StrCat("CPU ", cpu, " is not online and nobody says why (",
                        remains.simulator().Doing(CpuNumber(cpu)), ")");
  }
  // One that is late with its last steps, or about to see that it was given up, may still be.
  const bool late = remains.harmed(cpu) && sync != abi::SyncState::kDead;
  if (slot.online != 0 && (slot.error != 0 || sync == abi::SyncState::kDead) && !late) {
    return absl::StrCat("CPU ", cpu, " failed and counts as online");
  }
  return "";
}

std::string CheckCpu(const Remains& remains, uint32_t cpu) {
  const abi::CpuSlot& slot = remains.slot(cpu);
  std::string wrong = CheckFailed(remains, cpu);
  if (wrong.empty() && cpu != 0) wrong = CheckSteps(remains, cpu);
  if (!wrong.empty() || remains.harmed(cpu)) return wrong;
  if (slot.online == 0) {
    return absl::StrCat("CPU ", cpu, ", which nothing was done to, is not online (",
                        remains.simulator().Doing(CpuNumber(cpu)), ")");
  }
  if (slot.cpuhp_state != static_cast<uint32_t>(abi::CpuhpState::kOnline)) {
    return absl::StrCat("CPU ", cpu, " is online in state ", slot.cpuhp_state);
  }
  if (cpu == 0) return "";
  uint32_t steps = 0;
  for (const abi::TraceRecord& record : remains.ring(cpu)) {
    steps += record.event == TraceEvent::kCpuhpEnter && record.target == cpu ? 1u : 0u;
  }
  constexpr uint32_t kOwnSteps = 9;  // from ap:offline to sched:active
  if (steps == kOwnSteps) return "";
  return absl::StrCat("CPU ", cpu, " took ", steps, " steps of its own, not ", kOwnSteps);
}

// Nobody is waited for in vain but who is late, dead or was never reached. A step that fails is
// told at once.
std::string CheckTimeouts(const Remains& remains) {
  for (const abi::TraceRecord& record : remains.ring(0)) {
    if (record.event != TraceEvent::kTimeout || remains.late(record.target)) continue;
    return absl::StrCat("CPU ", record.target, ", which was ",
                        abi::Name(static_cast<abi::SyncState>(record.value)),
                        ", was waited for in vain, and nothing had made it late");
  }
  return "";
}

std::string CheckSums(const Remains& remains, uint32_t online) {
  const abi::ResultPage& result = remains.result();
  uint32_t in_cores = 0;
  uint32_t in_packages = 0;
  for (uint32_t cpu = 0; cpu < remains.cpus(); ++cpu) {
    in_cores += remains.slot(cpu).core_cpus;
    in_packages += remains.slot(cpu).package_cpus;
  }
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

std::string CheckCounts(const Remains& remains) {
  const abi::ResultPage& result = remains.result();
  uint32_t online = 0;
  uint32_t must_answer = 0;
  for (uint32_t cpu = 0; cpu < remains.cpus(); ++cpu) {
    online += remains.slot(cpu).online;
    must_answer += cpu != 0 && remains.slot(cpu).online != 0 && !remains.harmed(cpu) ? 1u : 0u;
  }
  const bool asked = remains.explored().config.scenario == abi::Scenario::kIpiAll;
  if (asked && result.ipi_answers < must_answer) {
    return absl::StrCat(result.ipi_answers, " of ", must_answer, " CPUs answered their IPI");
  }
  if (remains.unsettled()) return "";  // who died or is late counts as far as it came
  return CheckSums(remains, online);
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

// All that must hold while there are faults; the first that does not.
std::string CheckAll(const Remains& remains) {
  std::string wrong;
  for (uint32_t cpu = 0; cpu < remains.cpus() && wrong.empty(); ++cpu) {
    wrong = CheckCpu(remains, cpu);
  }
  for (const auto check : {CheckTimeouts, CheckCounts, CheckTscChecks, CheckSiblings}) {
    if (wrong.empty()) wrong = check(remains);
  }
  return wrong;
}

// Without faults, and with another try for each that had failed.
std::string CheckConverged(const Remains& remains) {
  bool all = true;
  uint32_t online = 0;
  for (uint32_t cpu = 0; cpu < remains.cpus(); ++cpu) {
    const abi::CpuSlot& slot = remains.slot(cpu);
    online += slot.online;
    if (remains.simulator().Harmed(CpuNumber(cpu))) {  // it hangs
      all = false;
      continue;
    }
    const std::string name = absl::StrCat("the faults are over, and CPU ", cpu);
    if (slot.online == 0) {
      return absl::StrCat(name, " does not come online (",
                          remains.simulator().Doing(CpuNumber(cpu)), ")");
    }
    if (slot.error != 0) return absl::StrCat(name, " is online and still said to have failed");
    if (slot.cpuhp_state != static_cast<uint32_t>(abi::CpuhpState::kOnline)) {
      return absl::StrCat(name, " is online in state ", slot.cpuhp_state);
    }
    std::string wrong = cpu != 0 ? CheckSteps(remains, cpu) : "";
    if (!wrong.empty()) return wrong;
  }
  if (remains.result().trampoline_lock != 0) {
    return absl::StrCat("the trampoline's lock is held; CPU ", remains.result().trampoline_holder,
                        " took it last");
  }
  return all ? CheckSums(remains, online) : "";
}

}  // namespace

std::string CheckBeforeSettling(const ExploreCase& explored, const ArenaLayout& arena,
                                const sim::Simulator& simulator) {
  return CheckAll(Remains(explored, arena, simulator));
}

std::string CheckRun(const ExploreCase& explored, const ArenaLayout& arena,
                     const sim::Simulator& simulator, const sim::End& end) {
  if (ExploresRcu(explored)) return CheckRcuRun(explored, arena, simulator, end);
  const Remains remains(explored, arena, simulator);
  std::string wrong = CheckEnd(remains, end);
  return wrong.empty() ? CheckConverged(remains) : wrong;
}

}  // namespace sipi
