#include "vmm/report/torture_report.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "vmm/report/scenario_head.h"
#include "vmm/report/services_json.h"
#include "vmm/timeline/outcome.h"
#include "vmm/timeline/scenario_names.h"
#include "vmm/timeline/service_analysis.h"

namespace sipi {
namespace {

using abi::TortureCounters;

// An element that a reader still sees after two grace periods should have been gone.
constexpr size_t kTooOld = 2;

template <size_t N>
uint64_t SumFrom(const uint64_t (&counts)[N], size_t first) {
  return std::accumulate(std::begin(counts) + first, std::end(counts), uint64_t{0});
}

template <size_t N>
std::string Line(const char* name, const uint64_t (&counts)[N]) {
  std::string text = absl::StrCat("rcu-torture: ", name, ": ");
  for (const uint64_t count : counts) absl::StrAppend(&text, " ", count);
  return absl::StrCat(text, "\n");
}

// Shortest and longest operation that worked, and the sum of all.
struct OnoffTimes {
  int64_t min_ns = 0;
  int64_t max_ns = 0;
  int64_t sum_ns = 0;
  uint32_t count = 0;
};

// Whole ms, rounded once, down: an operation that took less than one shows as 0.
int64_t Ms(int64_t ns) { return ns / 1'000'000; }

OnoffTimes TimesOf(const std::vector<HotplugOperation>& operations, bool up) {
  OnoffTimes times;
  for (const HotplugOperation& each : operations) {
    if (each.up != up || each.error != 0 || !each.ns.has_value()) continue;
    const int64_t ns = *each.ns;
    times.min_ns = times.count == 0 ? ns : std::min(times.min_ns, ns);
    times.max_ns = std::max(times.max_ns, ns);
    times.sum_ns += ns;
    ++times.count;
  }
  return times;
}

std::string OnoffLine(const RunRecord& record) {
  const TortureCounters& counters = record.services->counters;
  const std::vector<HotplugOperation> operations = HotplugOperations(record);
  const OnoffTimes on = TimesOf(operations, true);
  const OnoffTimes off = TimesOf(operations, false);
  return absl::StrCat("rcu-torture: onoff: ", counters.online_ok, "/", counters.online_tried, ":",
                      counters.offline_ok, "/", counters.offline_tried, " ", Ms(on.min_ns), ",",
                      Ms(on.max_ns), ":", Ms(off.min_ns), ",", Ms(off.max_ns), " ", Ms(on.sum_ns),
                      ":", Ms(off.sum_ns), " (ms, HZ=", record.services->kernel.hz, ")\n");
}

uint32_t ReadersOf(const RunRecord& record) {
  return abi::TortureReaders(record.services->knobs.readers, record.cpus_offered);
}
uint32_t FakeWritersOf(const RunRecord& record) {
  return abi::TortureFakeWriters(record.services->knobs.writers);
}

std::string StartLine(const RunRecord& record) {
  const abi::ScenarioKnobs& knobs = record.services->knobs;
  return absl::StrCat("rcu-torture:--- Start of test: nreaders=", ReadersOf(record),
                      " nfakewriters=", FakeWritersOf(record), " onoff=", uint32_t{knobs.onoff},
                      " seconds=", knobs.duration_ms / 1000, " seed=", knobs.seed,
                      " rcu_flavour=", Name(record.services->kernel.rcu_flavour),
                      " preempt=", Name(record.services->kernel.preemption),
                      " cpus=", record.cpus_offered, "\n");
}

std::string CounterLines(const RunRecord& record) {
  const TortureCounters& c = record.services->counters;
  return absl::StrCat(
      "rcu-torture: reads: ", c.reads, " updates: ", c.updates, " callbacks: ", c.callbacks_run,
      "/", c.callbacks_queued, " grace periods: ", c.gp_seq_end - c.gp_seq_begin,
      " expedited: ", c.exp_seq_end - c.exp_seq_begin, " failures: ", c.failures, "\n",
      Line("Reader Pipe", c.pipe), Line("Reader Batch", c.batch),
      Line("Free-Block Circulation", c.freed), Line("Updates by kind", c.updates_by_kind),
      OnoffLine(record), "rcu-torture: barrier: ", c.barrier_tries - c.barrier_failures, "/",
      c.barrier_tries, ":", c.barrier_failures, "\n",
      "rcu-torture: cookies: ", c.cookie_checks - c.cookie_failures, "/", c.cookie_checks, ":",
      c.cookie_failures, "\n", "rcu-torture: order: ", c.order_checks - c.order_failures, "/",
      c.order_checks, ":", c.order_failures, "\n", "rcu-torture: flood: ", c.flood_callbacks,
      " callbacks, failures: ", c.flood_failures, "\n",
      "rcu-torture: expedite nesting failures: ", c.nesting_failures, "\n");
}

// How often each check has failed, of those that have; by name.
std::vector<std::pair<const char*, uint64_t>> FailedChecks(const TortureCounters& counters) {
  std::vector<std::pair<const char*, uint64_t>> failed;
  for (uint32_t i = 0; i < std::size(counters.failures_by_check); ++i) {
    const uint64_t count = counters.failures_by_check[i];
    if (count != 0) failed.emplace_back(Name(static_cast<abi::TortureCheck>(i)), count);
  }
  return failed;
}

std::string FailedChecksText(const TortureCounters& counters) {
  std::string text;
  for (const auto& [name, count] : FailedChecks(counters)) {
    absl::StrAppend(&text, text.empty() ? "failed checks: " : ", ", name, " ", count);
  }
  return text;
}

// No CPU fails twice (abi::TortureCounters).
std::string CpusFailed(uint64_t tried, uint64_t ok, const char* what) {
  const uint64_t failed = tried - ok;
  return absl::StrCat(failed, failed == 1 ? " CPU" : " CPUs", " did not ", what, " (", ok, " of ",
                      tried, " tries did it)");
}

}  // namespace

std::vector<std::string> TortureFailures(const RunRecord& record) {
  const TortureCounters& c = record.services->counters;
  std::vector<std::string> failures;
  if (record.outcome != Outcome::kComplete) {
    failures.push_back(absl::StrCat("the run did not complete: ", Name(record.outcome),
                                    record.diagnosis.empty() ? "" : ": ", record.diagnosis));
  }
  const auto require = [&failures](bool good, const std::string& text) {
    if (!good) failures.push_back(text);
  };
  const auto none = [&require](uint64_t count, const char* what) {
    require(count == 0, absl::StrCat(count, " ", what));
  };
  const std::string checks = FailedChecksText(c);
  none(SumFrom(c.pipe, kTooOld), "reads of an element that was too old (Reader Pipe)");
  none(SumFrom(c.batch, kTooOld), "reads that spanned too many grace periods (Reader Batch)");
  none(c.order_failures, "stores from before a grace period were not seen after it");
  none(c.cookie_failures, "cookies were done too early, or not when they had to be");
  none(c.nesting_failures, "times the expedite nesting did not say what was asked for");
  none(c.barrier_failures, "barriers returned before all callbacks had run");
  none(c.flood_failures, "callback floods made no progress");
  if (!record.complete) {
    // What is under way is no failure, and what has not happened might have.
    require(checks.empty(), checks);
    return failures;
  }
  require(c.online_tried == c.online_ok, CpusFailed(c.online_tried, c.online_ok, "come online"));
  require(c.offline_tried == c.offline_ok, CpusFailed(c.offline_tried, c.offline_ok, "go offline"));
  require(c.callbacks_run == c.callbacks_queued,
          absl::StrCat(c.callbacks_queued, " callbacks were queued, ", c.callbacks_run, " ran"));
  require(c.reads > 0, "nothing was read");
  require(c.updates > 0, "nothing was updated");
  require(SumFrom(c.freed, 0) > 0, "no element was replaced");
  require(c.gp_seq_end != c.gp_seq_begin, "no normal grace period has ended");
  require(checks.empty(), checks);
  if (failures.empty()) none(c.failures, "failures that no check has named");
  return failures;
}

std::string TortureText(const RunRecord& record) {
  const std::vector<std::string> failures = TortureFailures(record);
  std::string text = absl::StrCat(ScenarioHead(record), StartLine(record), CounterLines(record));
  if (record.lost_events != 0) {
    absl::StrAppend(&text, "rcu-torture: ", LostEventsNote(record.lost_events),
                    ": times of onoff and stalls may be missing; counters and verdict do not need "
                    "them\n");
  }
  if (!record.complete) {
    absl::StrAppend(&text, "rcu-torture: cut short: counters are those up to then\n");
  }
  std::set<uint32_t> stalled;
  std::set<uint32_t> starved;
  for (const Event& event : record.events) {
    if (event.name == abi::TraceEvent::kRcuStall) stalled.insert(event.target);
    if (event.name == abi::TraceEvent::kGpStarved) starved.insert(event.target);
  }
  for (const uint32_t cpu : stalled) {
    absl::StrAppend(&text, "rcu-torture: CPU ", cpu, " has stalled a grace period\n");
  }
  for (const uint32_t cpu : starved) {
    absl::StrAppend(&text, "rcu-torture: the grace-period kthread was starved on CPU ", cpu, "\n");
  }
  for (const std::string& note : record.notes) {
    if (note != LostEventsNote(record.lost_events)) absl::StrAppend(&text, "note: ", note, "\n");
  }
  for (const std::string& failure : failures) {
    absl::StrAppend(&text, "rcu-torture:!!! ", failure, "\n");
  }
  absl::StrAppend(&text, "rcu-torture:--- End of test: ", failures.empty() ? "SUCCESS" : "FAILURE",
                  "\n");
  return text;
}

std::string TortureJson(const RunRecord& record) {
  const TortureCounters& c = record.services->counters;
  const std::vector<std::string> failures = TortureFailures(record);
  JsonWriter json;
  json.BeginObject();
  WriteScenarioHead(json, "sipi.rcu-torture/1", record);
  json.Field("result", failures.empty() ? "SUCCESS" : "FAILURE");
  json.Field("seconds", record.services->knobs.duration_ms / 1000);
  json.Field("readers", ReadersOf(record));
  json.Field("fake_writers", FakeWritersOf(record));
  json.Key("failures");
  json.BeginArray();
  for (const std::string& failure : failures) json.String(failure);
  json.EndArray();
  json.Key("failed_checks");
  json.BeginObject();
  for (const auto& [name, count] : FailedChecks(c)) json.Field(name, count);
  json.EndObject();
  json.Line();
  WriteNumbers(json, "reader_pipe", c.pipe);
  WriteNumbers(json, "reader_batch", c.batch);
  WriteNumbers(json, "free_block_circulation", c.freed);
  WriteNumbers(json, "updates_by_kind", c.updates_by_kind);
  const std::pair<const char*, uint64_t> fields[] = {
      {"reads", c.reads},
      {"updates", c.updates},
      {"counted_failures", c.failures},
      {"order_checks", c.order_checks},
      {"order_failures", c.order_failures},
      {"cookie_checks", c.cookie_checks},
      {"cookie_failures", c.cookie_failures},
      {"nesting_failures", c.nesting_failures},
      {"barrier_tries", c.barrier_tries},
      {"barrier_failures", c.barrier_failures},
      {"flood_callbacks", c.flood_callbacks},
      {"flood_failures", c.flood_failures},
      {"online_ok", c.online_ok},
      {"online_tried", c.online_tried},
      {"offline_ok", c.offline_ok},
      {"offline_tried", c.offline_tried},
      {"callbacks_queued", c.callbacks_queued},
      {"callbacks_run", c.callbacks_run},
      {"grace_periods", c.gp_seq_end - c.gp_seq_begin},
      {"expedited_grace_periods", c.exp_seq_end - c.exp_seq_begin}};
  for (const auto& [name, value] : fields) json.Field(name, value);
  json.EndObject();
  return json.Take();
}

}  // namespace sipi
