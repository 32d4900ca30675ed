// The texts and files of `sipi smt` and `sipi rcu`, from records made by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/report/service_records.h"
#include "vmm/report/rcu_report.h"
#include "vmm/report/scale_report.h"
#include "vmm/report/smt_page.h"
#include "vmm/report/smt_report.h"
#include "vmm/report/torture_report.h"
#include "vmm/report/trace_json.h"
#include "vmm/timeline/scenario_names.h"

namespace sipi {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

// --- smt

TEST(SmtReport, RowsHaveRatiosToNone) {
  const std::vector<SmtRow> rows = SmtRows(SmtSwitches(SmtRun()));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_DOUBLE_EQ(*rows[0].off.ratio, 1.0);
  EXPECT_DOUBLE_EQ(*rows[1].off.ratio, 8.0);
  EXPECT_DOUBLE_EQ(*rows[1].on.ratio, 4.0);
  EXPECT_EQ(rows[0].off.longest_hold_ns, 3'000'000);
  EXPECT_TRUE(rows[0].whole());
  EXPECT_FALSE(rows[1].whole());
}

// A switch in which no CPU went is no measure of another.
TEST(SmtReport, WithoutCpusThatGoThereIsNoRatio) {
  for (const size_t idle : {size_t{0}, size_t{2}}) {
    std::vector<SmtSwitch> switches = SmtSwitches(SmtRun());
    for (SmtSwitch& each : switches) each.operations = 1;
    switches[idle].operations = 0;
    const std::vector<SmtRow> rows = SmtRows(switches);
    EXPECT_FALSE(rows[1].off.ratio.has_value()) << idle;
    EXPECT_TRUE(rows[1].on.ratio.has_value()) << idle;
  }
}

TEST(SmtReport, WithoutNoneThereIsNoRatio) {
  std::vector<SmtSwitch> switches = SmtSwitches(SmtRun());
  switches.erase(switches.begin(), switches.begin() + 2);
  EXPECT_FALSE(SmtRows(switches)[0].off.ratio.has_value());
}

TEST(SmtReport, AFailedCpuMakesItPartial) {
  const std::string table = SmtTable(SmtRun());
  EXPECT_THAT(table, HasSubstr("partial: 1 CPU failed"));
  EXPECT_THAT(table, HasSubstr("3/0/0"));
  EXPECT_THAT(table, HasSubstr("0/3/0"));
  EXPECT_FALSE(SmtComplete(SmtRun(), SmtRows(SmtSwitches(SmtRun()))));
}

// Whole, but for what the test takes away.
RunRecord WholeSmtRun() {
  RunRecord record = SmtRun();
  record.events.back().value = 0;
  return record;
}

TEST(SmtReport, CompleteNeedsEveryApproachEveryRoundAndEveryEvent) {
  const auto complete = [](const RunRecord& record) {
    return SmtComplete(record, SmtRows(SmtSwitches(record)));
  };
  EXPECT_TRUE(complete(WholeSmtRun()));
  EXPECT_THAT(SmtTable(WholeSmtRun()), Not(HasSubstr("partial")));
  RunRecord missing = WholeSmtRun();
  missing.services->knobs.approaches = 7;
  EXPECT_FALSE(complete(missing));
  RunRecord rounds = WholeSmtRun();
  rounds.services->knobs.rounds = 2;
  EXPECT_FALSE(complete(rounds));
  RunRecord lost = WholeSmtRun();
  lost.lost_events = 1;
  EXPECT_FALSE(complete(lost));
  RunRecord late = WholeSmtRun();
  late.outcome = Outcome::kTimeLimit;
  EXPECT_FALSE(complete(late));
  RunRecord cut = WholeSmtRun();
  cut.events.pop_back();
  EXPECT_FALSE(complete(cut));
}

// What a report calls partial may well be a run whose outcome is "complete".
TEST(ScenarioReports, SayWhyTheyArePartial) {
  RunRecord record = WholeSmtRun();
  record.services->knobs.rounds = 2;
  EXPECT_THAT(SmtTable(record), HasSubstr("\npartial: not all that was asked for was done\n"));
  record.lost_events = 3;
  EXPECT_THAT(SmtTable(record), HasSubstr("\npartial: events were lost\n"));
  record.outcome = Outcome::kPartial;
  EXPECT_THAT(SmtTable(record), HasSubstr("\npartial: not all CPUs came up\n"));
  record.outcome = Outcome::kTimeLimit;
  EXPECT_THAT(SmtTable(record), HasSubstr("\npartial: the run was cut short (time-limit)\n"));
  RunRecord scale = ScaleRun();
  scale.outcome = Outcome::kPartial;
  EXPECT_THAT(ScaleText(scale, false), HasSubstr("!!! partial: not all CPUs came up\n"));
}

TEST(SmtReport, LostEventsAreNotTakenForSwitchesThatDidNotEnd) {
  RunRecord cut = WholeSmtRun();
  cut.events.pop_back();
  EXPECT_THAT(SmtTable(cut), HasSubstr("partial: not ended"));
  cut.lost_events = 2;
  EXPECT_THAT(SmtTable(cut), Not(HasSubstr("not ended")));
  EXPECT_THAT(SmtTable(cut), HasSubstr("partial: events lost"));
  cut.events.clear();
  EXPECT_THAT(SmtTable(cut), Not(HasSubstr("no switch has begun")));
  EXPECT_THAT(SmtTable(cut), HasSubstr("2 events were lost"));
}

// Cut short in its first switch, with the lock held: for as long as it was, and no other figure.
TEST(SmtReport, AHoldThatHasNotEndedCountsSoFar) {
  RecordBuilder run(4);
  run.At(0, 0, abi::TraceEvent::kSmtBegin, 1, 0)
      .At(1'000, 0, abi::TraceEvent::kCpusWriteLocked)
      .At(6'000, 0, abi::TraceEvent::kSyncBegin);
  RunRecord record = WholeSmtRun();
  record.events = run.Take().events;
  EXPECT_EQ(SmtSwitches(record)[0].longest_hold_ns, 5'000'000);
  const json row = json::parse(SmtJson(record))["rows"][0];
  EXPECT_EQ(row["off"]["longest_hold_ns"], 5'000'000);
  EXPECT_TRUE(row["on"]["longest_hold_ns"].is_null());
}

TEST(SmtReport, JsonHasTheFiguresOfTheTable) {
  const json file = json::parse(SmtJson(SmtRun()));
  EXPECT_EQ(file["schema"], "sipi.smt/1");
  EXPECT_EQ(file["complete"], false);
  EXPECT_EQ(file["kernel"]["hz"], 250);
  EXPECT_EQ(file["kernel"]["hotplug_steps"], "x86");
  EXPECT_EQ(file["rows"][0]["approach"], "none");
  EXPECT_EQ(file["rows"][0]["off"]["median_ns"], 8'000'000);
  EXPECT_EQ(file["rows"][0]["off"]["grace_periods"]["normal"], 3);
  EXPECT_EQ(file["rows"][1]["off"]["ratio"], 8.0);
  EXPECT_EQ(file["rows"][1]["on"]["failed"], 1);
  EXPECT_EQ(file["switches"].size(), 4u);
}

TEST(SmtPage, StandsAlone) {
  const std::string page = SmtPage(SmtRun());
  EXPECT_THAT(page, HasSubstr("<!DOCTYPE html>"));
  EXPECT_THAT(page, HasSubstr("expedite off"));
  EXPECT_THAT(page, Not(HasSubstr("http")));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
}

// --- all of them

// Figures say where they come from.
TEST(ScenarioReports, BeginWithMachineAndKnobs) {
  const auto on_kvm = [](RunRecord record) {
    record.host = {.kvm_module = "kvm_amd", .cpu = "AMD EPYC", .cores = 2, .kernel = "6.1.0"};
    record.seed = 7;
    return record;
  };
  const auto simulated = [](RunRecord record) {
    record.host = {};
    record.machine = "sim";
    return record;
  };
  const auto texts = [](const std::function<RunRecord(RunRecord)>& change) {
    return std::vector<std::string>{
        SmtTable(change(SmtRun())), ScaleText(change(ScaleRun()), false),
        RefText(change(RefRun(5))), CallRcuTable({change(CallRcuRun())}),
        TortureText(change(TortureRun()))};
  };
  for (const std::string& text : texts(on_kvm)) {
    EXPECT_EQ(text.find("host AMD EPYC, 2 cores, kvm_amd, Linux 6.1.0\n"), 0u) << text;
    EXPECT_THAT(text, HasSubstr(" CPUs, irqchip user, x2apic, profile native, seed 7; HZ=250, "
                                "preempt full, RCU preemptible\n"));
  }
  for (const std::string& text : texts(simulated)) {
    EXPECT_THAT(text, HasSubstr(" simulated CPUs, irqchip"));
    EXPECT_THAT(text, Not(HasSubstr("host ")));
  }
}

// --- torture

TEST(TortureReport, SuccessIsTheLastLine) {
  EXPECT_TRUE(TortureFailures(TortureRun()).empty());
  const std::string text = TortureText(TortureRun());
  EXPECT_THAT(text, HasSubstr("Reader Pipe:  1000 20 0 0 0 0 0 0 0 0 0\n"));
  EXPECT_THAT(text, HasSubstr("onoff: 1/1:1/1 7,7:3,3 7:3 (ms, HZ=250)\n"));
  EXPECT_THAT(text, HasSubstr("grace periods: 32 "));
  EXPECT_TRUE(text.ends_with("--- End of test: SUCCESS\n")) << text;
}

// Three operations of 0.9 ms are 2.7 ms.
TEST(TortureReport, SumsOfHotplugAreRoundedOnce) {
  RecordBuilder run(2);
  for (int64_t i = 0; i < 3; ++i) {
    run.At(10'000 * i, 0, abi::TraceEvent::kHotplugBegin, 1, 0)
        .At(10'000 * i + 900, 0, abi::TraceEvent::kHotplugEnd, 1, 0);
  }
  RunRecord record = TortureRun();
  record.events = run.Take().events;
  EXPECT_THAT(TortureText(record), HasSubstr(":0,0 0:2 (ms, HZ=250)\n"));
}

TEST(TortureReport, OneThatIsCutShortTellsWhatItHasCountedAndNoMore) {
  RunRecord record = TortureRun();
  record.outcome = Outcome::kTimeLimit;
  record.complete = false;
  record.services->counters.callbacks_run -= 3;  // in flight
  record.services->counters.online_tried += 1;   // under way
  EXPECT_EQ(TortureFailures(record).size(), 1u);
  const std::string text = TortureText(record);
  EXPECT_THAT(text, HasSubstr("rcu-torture: cut short: "));
  EXPECT_THAT(text, HasSubstr("!!! the run did not complete: time-limit"));
  record.services->counters.reads = record.services->counters.updates = 0;
  EXPECT_THAT(TortureText(record), Not(HasSubstr("nothing was")));
  record.services->counters.order_failures = 1;
  EXPECT_EQ(TortureFailures(record).size(), 2u);
}

TEST(TortureReport, NamesTheThreadsThatThereWere) {
  RunRecord record = TortureRun();
  record.cpus_offered = 5;
  record.services->knobs.readers = record.services->knobs.writers = 0;  // the guest's defaults
  EXPECT_THAT(TortureText(record), HasSubstr("nreaders=4 nfakewriters=4 "));
  EXPECT_EQ(json::parse(TortureJson(record))["readers"], 4);
  EXPECT_EQ(json::parse(TortureJson(record))["fake_writers"], 4);
  record.services->knobs.readers = 9;
  EXPECT_THAT(TortureText(record), HasSubstr("nreaders=9 "));
  RunRecord ref = RefRun(5);  // four CPUs
  EXPECT_THAT(RefText(ref), HasSubstr("nreaders=3 loops=2000 "));
  EXPECT_EQ(json::parse(RefJson(ref))["readers"], 3);
}

TEST(TortureReport, LostEventsDoNotDecide) {
  RunRecord record = TortureRun();
  record.lost_events = 3;
  EXPECT_THAT(TortureText(record), HasSubstr("3 events of the timeline were lost: times of onoff"));
  EXPECT_THAT(TortureText(record), HasSubstr("SUCCESS"));
}

TEST(TortureReport, EachKindOfFailureFails) {
  using Break = void (*)(RunRecord&);
  const Break breaks[] = {
      [](RunRecord& r) { r.services->counters.pipe[2] = 1; },
      [](RunRecord& r) { r.services->counters.pipe[10] = 1; },
      [](RunRecord& r) { r.services->counters.batch[2] = 1; },
      [](RunRecord& r) { r.services->counters.order_failures = 1; },
      [](RunRecord& r) { r.services->counters.cookie_failures = 1; },
      [](RunRecord& r) { r.services->counters.nesting_failures = 1; },
      [](RunRecord& r) { r.services->counters.barrier_failures = 1; },
      [](RunRecord& r) { r.services->counters.flood_failures = 1; },
      [](RunRecord& r) { r.services->counters.online_ok = 0; },
      [](RunRecord& r) { r.services->counters.offline_ok = 0; },
      [](RunRecord& r) { --r.services->counters.callbacks_run; },
      [](RunRecord& r) { ++r.services->counters.callbacks_run; },
      [](RunRecord& r) { r.services->counters.reads = 0; },
      [](RunRecord& r) { r.services->counters.updates = 0; },
      [](RunRecord& r) { r.services->counters.freed[0] = 0; },
      [](RunRecord& r) { r.services->counters.gp_seq_end = r.services->counters.gp_seq_begin; },
      [](RunRecord& r) { r.services->counters.failures = 1; },
      [](RunRecord& r) { r.services->counters.failures_by_check[2] = 1; },
      [](RunRecord& r) { r.outcome = Outcome::kAllHalted; },
  };
  for (size_t i = 0; i < std::size(breaks); ++i) {
    RunRecord record = TortureRun();
    breaks[i](record);
    EXPECT_EQ(TortureFailures(record).size(), 1u) << i;
    EXPECT_TRUE(TortureText(record).ends_with("--- End of test: FAILURE\n")) << i;
    EXPECT_EQ(json::parse(TortureJson(record))["result"], "FAILURE") << i;
  }
  EXPECT_EQ(json::parse(TortureJson(TortureRun()))["result"], "SUCCESS");
}

// Whatever check it is, text and file say which.
TEST(TortureReport, EachFailedCheckIsNamed) {
  std::set<std::string> names;
  for (uint32_t i = 1; i < abi::kTortureChecks; ++i) {
    RunRecord record = TortureRun();
    record.services->counters.failures = 3;
    record.services->counters.failures_by_check[i] = 3;
    const std::string name = Name(static_cast<abi::TortureCheck>(i));
    EXPECT_NE(name, "?") << i;
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_THAT(TortureText(record), HasSubstr("!!! failed checks: " + name + " 3\n"));
    EXPECT_EQ(json::parse(TortureJson(record))["failed_checks"], json({{name, 3}}));
  }
  EXPECT_EQ(json::parse(TortureJson(TortureRun()))["failed_checks"], json::object());
}

// Tries that worked are no CPUs that failed.
TEST(TortureReport, CountsTheCpusThatFailedToGoOrCome) {
  RunRecord record = TortureRun();
  record.services->counters.online_tried = 12;
  record.services->counters.online_ok = 11;
  EXPECT_THAT(TortureText(record),
              HasSubstr("!!! 1 CPU did not come online (11 of 12 tries did it)\n"));
}

// --- the trace

TEST(TraceJson, GracePeriodsAndHotplugHaveTracksOfTheirOwn) {
  RecordBuilder run(2);
  run.At(0, 0, abi::TraceEvent::kGpBegin, 0, 5)
      .At(10, 0, abi::TraceEvent::kGpInit)
      .At(15, 0, abi::TraceEvent::kGpFqs, 0, 1)
      .At(20, 0, abi::TraceEvent::kGpEnd, 0, 8)
      .At(21, 0, abi::TraceEvent::kCpusWriteLock)
      .At(22, 0, abi::TraceEvent::kCpusWriteLocked)
      .At(30, 1, abi::TraceEvent::kCpusWriteUnlock);
  const json trace = json::parse(TraceJson(run.Take()));
  std::map<std::string, json> spans;
  std::map<std::string, int> tracks;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") spans[event["name"]] = event;
    if (event["name"] == "thread_name") tracks[event["args"]["name"]] = event["tid"];
  }
  ASSERT_TRUE(tracks.contains("RCU") && tracks.contains("hotplug")) << trace;
  EXPECT_FALSE(tracks.contains("RCU expedited"));
  ASSERT_TRUE(spans.contains("grace period 5"));
  EXPECT_EQ(spans["grace period 5"]["tid"], tracks["RCU"]);
  EXPECT_EQ(spans["grace period 5"]["dur"], 20);
  EXPECT_EQ(spans["init"]["dur"], 10);
  EXPECT_EQ(spans["wait"]["dur"], 10);
  EXPECT_EQ(spans["write lock"]["dur"], 8);
  EXPECT_EQ(spans["write lock"]["tid"], tracks["hotplug"]);
}

}  // namespace
}  // namespace sipi
