// The texts and files of `sipi smt` and `sipi rcu`, from records made by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/report/service_records.h"
#include "vmm/report/hotplug_table.h"
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

// --- scale

TEST(ScaleReport, HasTheLinesOfRcuscaleAndOfItsScript) {
  const std::string text = ScaleText(ScaleRun(), false);
  EXPECT_THAT(text, HasSubstr("rcu-scale:--- Start of test: gp_async=0 gp_exp=0"));
  EXPECT_THAT(text, HasSubstr("rcu-scale: rcu_scale_writer 1 has 2 measurements\n"));
  EXPECT_THAT(text, HasSubstr("rcu-scale: Test complete\n"));
  EXPECT_THAT(text, HasSubstr("rcu-scale: writer 0 gps: 2\n"));
  EXPECT_THAT(text,
              HasSubstr("rcu-scale: start: 20000 end: 45000 duration: 25000 gps: 5 batches: 2\n"));
  EXPECT_THAT(text, HasSubstr("Histogram bucket size: 0.1\n1 1\n7 1\n8 2\n9 1\n"
                              "Average grace-period duration: 6.6 microseconds\n"
                              "Minimum grace-period duration: 1\n"
                              "50th percentile grace-period duration: 7\n"
                              "90th percentile grace-period duration: 8\n"
                              "99th percentile grace-period duration: 8\n"
                              "Maximum grace-period duration: 9\n"
                              "Grace periods: 5 Batches: 2 Ratio: 2.5\n"
                              "Computed from sipi's timeline.\n"));
  EXPECT_THAT(text, Not(HasSubstr("writer-duration")));
  EXPECT_THAT(text, Not(HasSubstr("!!!")));
}

TEST(ScaleReport, DurationsOnRequest) {
  EXPECT_THAT(ScaleText(ScaleRun(), true),
              HasSubstr("rcu-scale:    1 writer-duration:     2 1000\n"));
}

TEST(ScaleReport, WhatIsMissingIsMarked) {
  RunRecord few = ScaleRun();
  few.services->knobs.measurements = 3;
  EXPECT_THAT(ScaleText(few, false), HasSubstr("!!! rcu_scale_writer 0 has 2 measurements of 3"));
  EXPECT_FALSE(ScaleComplete(few, ScaleMeasurements(few, false)));
  RunRecord writers = ScaleRun();
  writers.cpus_offered = 3;
  EXPECT_THAT(ScaleText(writers, false), HasSubstr("!!! 1 writers have not started"));
  EXPECT_TRUE(ScaleComplete(ScaleRun(), ScaleMeasurements(ScaleRun(), false)));
  RecordBuilder none(2);
  none.record().services = ServicesInfo();
  EXPECT_THAT(ScaleText(none.Take(), false), HasSubstr("!!! no grace period was measured"));
}

TEST(ScaleReport, JsonHasEachMeasurement) {
  const json file = json::parse(ScaleJson(ScaleRun()));
  EXPECT_EQ(file["schema"], "sipi.rcu-scale/1");
  EXPECT_EQ(file["complete"], true);
  EXPECT_EQ(file["batches"], 2);
  EXPECT_EQ(file["p90_us"], 8.0);
  EXPECT_EQ(file["writers"][1]["durations_ns"], json({7'000, 9'000, 1'000}));
}

// --- ref and callrcu

TEST(RefReport, FiguresOfItsPoints) {
  RecordBuilder run(1);
  run.Online(0);
  for (const uint32_t ps : {1'500u, 500u, 1'000u, 3'000u}) {
    run.At(0, 0, abi::TraceEvent::kRefPoint, 0, ps);
  }
  run.record().services = ServicesInfo();
  run.record().services->knobs.rounds = 4;
  const RunRecord record = run.Take();
  const std::string text = RefText(record);
  EXPECT_THAT(text, HasSubstr("Runs\tTime(ns)\n1\t1.500\n"));
  EXPECT_THAT(text, HasSubstr("Points: 4\nAverage reader duration: 1.5 nanoseconds\n"
                              "Minimum reader duration: 0.5\nMedian reader duration: 1\n"
                              "Maximum reader duration: 3\nComputed from"));
  EXPECT_TRUE(RefComplete(record));
  RunRecord more = record;
  more.services->knobs.rounds = 5;
  EXPECT_FALSE(RefComplete(more));
  EXPECT_EQ(json::parse(RefJson(record))["points_ps"].size(), 4u);
}

RunRecord CallRcuRun() {
  RecordBuilder run(2);
  run.Online(0).Online(1);
  run.At(0, 0, abi::TraceEvent::kScaleBegin)
      .At(10, 0, abi::TraceEvent::kWorkerPinned, 0, 10)
      .At(20, 0, abi::TraceEvent::kWorkerRanAway, 1)
      .At(400'000, 1, abi::TraceEvent::kScaleEnd, 0, 600)
      .At(500'000, 0, abi::TraceEvent::kScaleEnd, 0, 400);
  run.record().services = ServicesInfo();
  run.record().services->knobs.measurements = 5000;  // of each of the two CPUs, had there been time
  run.record().services->counters.callbacks_queued = 1007;
  run.record().services->counters.callbacks_run = 1007;
  return run.Take();
}

TEST(CallRcuReport, SaysWhyNoLazyWorkerWasPinned) {
  RecordBuilder run(2);
  run.Online(0).Online(1);
  run.At(0, 0, abi::TraceEvent::kScaleBegin).At(9, 0, abi::TraceEvent::kScaleEnd, 0, 5);
  run.record().services = ServicesInfo();
  run.record().services->counters.updates = 2 * 100;
  const std::string text = CallRcuTable({run.Take()});
  EXPECT_THAT(text, HasSubstr("some 100 loops each")) << text;
  EXPECT_THAT(CallRcuTable({CallRcuRun()}), Not(HasSubstr("loops each")));
}

TEST(CallRcuReport, RatesPinsAndRunaways) {
  const std::string table = CallRcuTable({CallRcuRun()});
  EXPECT_THAT(table, HasSubstr("lazy"));
  const json row = json::parse(CallRcuJson({CallRcuRun()}))["rows"][0];
  EXPECT_EQ(row["callbacks_per_s"], 2000.0);
  EXPECT_EQ(row["window_callbacks"], 1000);
  EXPECT_EQ(row["pinned_us"], json({{"0", 10}}));
  EXPECT_EQ(row["ran_away_cpus"], json({1}));
  EXPECT_TRUE(CallRcuComplete(CallRcuRun()));
  RunRecord lost = CallRcuRun();
  lost.services->counters.callbacks_run = 999;
  EXPECT_FALSE(CallRcuComplete(lost));
  EXPECT_THAT(CallRcuTable({lost}), HasSubstr("partial"));
}

// --- torture

TEST(TortureReport, SuccessIsTheLastLine) {
  EXPECT_TRUE(TortureFailures(TortureRun()).empty());
  const std::string text = TortureText(TortureRun());
  EXPECT_THAT(text, HasSubstr("Reader Pipe:  1000 20 0 0 0 0 0 0 0 0 0\n"));
  EXPECT_THAT(text, HasSubstr("onoff: 1/1:1/1 7,7:3,3 7:3 (HZ=250)\n"));
  EXPECT_THAT(text, HasSubstr("grace periods: 32 "));
  EXPECT_TRUE(text.ends_with("--- End of test: SUCCESS\n")) << text;
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
      [](RunRecord& r) { r.services->counters.gp_seq_end = r.services->counters.gp_seq_begin; },
      [](RunRecord& r) { r.services->counters.failures = 1; },
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

// --- hotplug, and the trace

TEST(HotplugTable, CountsFailures) {
  EXPECT_EQ(HotplugTable(SerialRun()), "");
  EXPECT_EQ(HotplugFailures(TortureRun()), 0u);
  RunRecord record = TortureRun();
  record.events.back().value = 3;
  EXPECT_EQ(HotplugFailures(record), 1u);
  EXPECT_THAT(HotplugTable(record), HasSubstr("off          1"));
}

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
