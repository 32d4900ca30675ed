// The texts and files of `sipi rcu scale`, `ref` and `callrcu`, from records made by hand.
#include "vmm/report/rcu_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/report/service_records.h"
#include "vmm/report/scale_report.h"

namespace sipi {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

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

// "!!!" is rcuscale's mark for errors; a note is none.
TEST(ScaleReport, NotesAreNoErrors) {
  RunRecord record = ScaleRun();
  record.notes = {"more vCPUs than cores"};
  EXPECT_THAT(ScaleText(record, false), HasSubstr("\nnote: more vCPUs than cores\n"));
  EXPECT_THAT(ScaleText(record, false), Not(HasSubstr("!!!")));
  record.services->knobs.measurements = 3;  // partial
  EXPECT_THAT(ScaleText(record, false), HasSubstr("\nnote: more vCPUs than cores\n"));
}

// What no event tells may well have happened.
TEST(ScaleReport, LostEventsAreNotTakenForWritersThatDidNothing) {
  RecordBuilder none(4);
  none.record().services = ServicesInfo();
  none.record().lost_events = 12;
  none.record().notes = {LostEventsNote(12)};
  const std::string text = ScaleText(none.Take(), false);
  EXPECT_THAT(text, Not(HasSubstr("have not started")));
  EXPECT_THAT(text, Not(HasSubstr("was made")));
  EXPECT_THAT(text, HasSubstr("!!! 12 events of the timeline were lost\n"));
  EXPECT_EQ(text.find("were lost"), text.rfind("were lost")) << "said once";
  RunRecord few = ScaleRun();
  few.lost_events = 1;
  few.services->knobs.measurements = 3;
  EXPECT_THAT(ScaleText(few, false), HasSubstr("2 measurements of 3 in what is left"));
}

TEST(ScaleReport, AsyncSaysThatItTimesCalls) {
  RunRecord record = ScaleRun();
  record.services->knobs.async = 1;
  const std::string text = ScaleText(record, false);
  EXPECT_THAT(text, HasSubstr("gp_async=1 gp_async_max=1000 gp_exp=0"));
  EXPECT_THAT(text, HasSubstr("rcu-scale: writer 0 callbacks: 2\n"));
  EXPECT_THAT(text, HasSubstr("Average call_rcu() duration: 6.6 microseconds\n"));
  EXPECT_THAT(text, HasSubstr("Callbacks: 5 Batches: 2 Ratio: 2.5\n"));
  EXPECT_THAT(text, Not(HasSubstr("grace-period")));
  const json file = json::parse(ScaleJson(record));
  EXPECT_EQ(file["measured"], "call_rcu");
  EXPECT_EQ(file["callbacks"], 5);
  EXPECT_FALSE(file.contains("grace_periods"));
  EXPECT_EQ(json::parse(ScaleJson(ScaleRun()))["measured"], "synchronize_rcu");
}

TEST(ScaleReport, SaysWhenAKnobMadeThemAnotherKind) {
  RunRecord record = ScaleRun();
  EXPECT_EQ(json::parse(ScaleJson(record))["served_by"], json({"normal"}));
  record.services->knobs.expedited = 1;
  EXPECT_THAT(ScaleText(record, false), HasSubstr("note: rcu_normal is on: normal grace periods"));
  for (Event& event : record.events) {
    if (event.name == abi::TraceEvent::kSyncEnd) event.value = 1;
  }
  EXPECT_THAT(ScaleText(record, false), Not(HasSubstr("note: ")));
  record.services->knobs.expedited = 0;
  EXPECT_THAT(ScaleText(record, false), HasSubstr("note: rcu_expedited is on: expedited grace"));
  EXPECT_EQ(json::parse(ScaleJson(record))["served_by"], json({"expedited"}));
}

TEST(ScaleReport, WhatIsMissingIsMarked) {
  RunRecord few = ScaleRun();
  few.services->knobs.measurements = 3;
  EXPECT_THAT(ScaleText(few, false), HasSubstr("!!! rcu_scale_writer 0 has 2 measurements of 3"));
  EXPECT_FALSE(ScaleComplete(few, ScaleMeasurements(few, false)));
  RunRecord writers = ScaleRun();
  writers.cpus_wanted = 3;
  EXPECT_THAT(ScaleText(writers, false), HasSubstr("!!! 1 writers have not started"));
  EXPECT_TRUE(ScaleComplete(ScaleRun(), ScaleMeasurements(ScaleRun(), false)));
  RecordBuilder none(2);
  none.record().services = ServicesInfo();
  EXPECT_THAT(ScaleText(none.Take(), false), HasSubstr("!!! no measurement was made"));
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
  EXPECT_THAT(text, HasSubstr(" loops=2000 nruns=4\n"));
  EXPECT_EQ(json::parse(RefJson(record))["loops"], 2000);
  EXPECT_EQ(json::parse(RefJson(record))["rounds"], 4);
}

// The simulator charges nothing for a reader: there is no duration, and none is shown.
TEST(RefReport, ASimulatedRunHasNoDurations) {
  RunRecord record = RefRun(5);
  record.machine = "sim";
  const std::string text = RefText(record);
  EXPECT_THAT(text, HasSubstr("take no virtual time"));
  EXPECT_THAT(text, HasSubstr("--machine=sim"));
  EXPECT_THAT(text, HasSubstr("Points: 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("nanoseconds")));
  EXPECT_THAT(text, Not(HasSubstr("0.005")));
  EXPECT_TRUE(RefComplete(record));
  const json file = json::parse(RefJson(record));
  EXPECT_EQ(file["measured"], false);
  EXPECT_TRUE(file["average_ns"].is_null());
  EXPECT_EQ(json::parse(RefJson(RefRun(5)))["measured"], true);
}

TEST(RefReport, AReadOfManyMicrosecondsIsNoneOfAProcessor) {
  EXPECT_THAT(RefText(RefRun(400'000'000)), HasSubstr("KVM emulates"));
  EXPECT_THAT(RefText(RefRun(1'500)), Not(HasSubstr("KVM emulates")));
}

TEST(CallRcuReport, RatesPinsAndRunaways) {
  const std::string table = CallRcuTable({CallRcuRun()});
  EXPECT_THAT(table, HasSubstr("lazy"));
  // The rate is that of the two columns before it.
  EXPECT_THAT(table, testing::ContainsRegex("lazy +1000 +500.000 +2000 "));
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

TEST(CallRcuReport, ARemarkOfAllRunsIsMadeOnce) {
  RunRecord record = CallRcuRun();
  record.notes = {"more vCPUs than cores"};
  RunRecord other = record;
  other.notes.emplace_back("of this run alone");
  const std::string table = CallRcuTable({record, other, record});
  EXPECT_EQ(table.find("note: more"), table.rfind("note: more"));
  EXPECT_THAT(table, HasSubstr("note: of this run alone\n"));
}

TEST(CallRcuReport, WhereEventsAreMissingItIsPartial) {
  RunRecord record = CallRcuRun();
  record.lost_events = 1;
  EXPECT_FALSE(CallRcuComplete(record));
}

}  // namespace
}  // namespace sipi
