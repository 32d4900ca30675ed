#include "vmm/report/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nlohmann/json.hpp"
#include "tests/report/records.h"
#include "vmm/report/compare_json.h"
#include "vmm/report/compare_table.h"

namespace sipi {
namespace {

using abi::TraceEvent;
using nlohmann::json;
using testing::HasSubstr;

// A run of two CPUs that takes `us` in all, a tenth of it for the kick.
RunRecord Complete(const char* strategy, int64_t us) {
  RecordBuilder run(2);
  run.record().strategy = strategy;
  run.At(0, 0, TraceEvent::kSmpbootBegin)
      .At(0, 0, TraceEvent::kKickBegin, 1)
      .At(us / 10, 0, TraceEvent::kKickEnd, 1)
      .At(us, 0, TraceEvent::kSmpbootEnd)
      .Online(0)
      .Online(1);
  return run.Take();
}

RunRecord Incomplete(const char* strategy, int64_t us) {
  RunRecord record = Complete(strategy, us);
  record.cpus_online = 1;
  record.outcome = Outcome::kPartial;
  return record;
}

Comparison Example() {
  Comparison comparison("serial");
  comparison.Add(Complete("serial", 1'000));
  comparison.Add(Complete("kick", 400));
  comparison.Add(Complete("serial", 3'000));
  comparison.Add(Complete("kick", 800));
  comparison.Add(Complete("serial", 2'000));
  comparison.Add(Complete("kick", 600));
  return comparison;
}

TEST(Comparison, GroupsByStrategyAndTakesMedians) {
  const std::vector<CompareRow> rows = Example().Rows();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].strategy, "serial");
  EXPECT_EQ(rows[0].runs, 3u);
  EXPECT_EQ(rows[0].smpboot_ns->median, 2'000'000);
  EXPECT_EQ(rows[0].smpboot_ns->min, 1'000'000);
  EXPECT_EQ(rows[0].smpboot_ns->max, 3'000'000);
  EXPECT_EQ(rows[0].phases_ns[0], 200'000);
  EXPECT_EQ(rows[0].ratio, 1.0);
  EXPECT_EQ(rows[1].smpboot_ns->median, 600'000);
  EXPECT_DOUBLE_EQ(*rows[1].ratio, 2'000.0 / 600.0);
  EXPECT_EQ(rows[1].cpus_online, 2u);
}

TEST(Comparison, PartialRunsDoNotCountForTheFigures) {
  Comparison comparison("serial");
  comparison.Add(Complete("serial", 1'000));
  comparison.Add(Complete("kick", 500));
  comparison.Add(Incomplete("kick", 10));
  const CompareRow row = comparison.Rows()[1];
  EXPECT_EQ(row.partial_runs, 1u);
  EXPECT_EQ(row.cpus_online, 1u);
  EXPECT_EQ(row.smpboot_ns->median, 500'000);
  EXPECT_DOUBLE_EQ(*row.ratio, 2.0);
}

TEST(Comparison, RowWithoutACompleteRunHasFiguresButNoRatio) {
  Comparison comparison("serial");
  comparison.Add(Complete("serial", 1'000));
  comparison.Add(Incomplete("full", 10));
  const CompareRow row = comparison.Rows()[1];
  EXPECT_EQ(row.smpboot_ns->median, 10'000);
  EXPECT_FALSE(row.ratio.has_value());
}

TEST(Comparison, BaselineThatDidNotRunGivesNoRatios) {
  Comparison comparison("serial");
  comparison.Add(Complete("kick", 500));
  EXPECT_FALSE(comparison.Rows()[0].ratio.has_value());
}

TEST(Comparison, RunWithoutAnEndHasNoTime) {
  Comparison comparison("serial");
  RunRecord record = Incomplete("serial", 500);
  record.events.pop_back();
  comparison.Add(record);
  const CompareRow row = comparison.Rows()[0];
  EXPECT_EQ(row.runs, 1u);
  EXPECT_FALSE(row.smpboot_ns.has_value());
  EXPECT_THAT(CompareTable(comparison), HasSubstr("1/2  partial\n"));
}

TEST(CompareTable, ShowsRatiosWithTwoDecimalsAndSpread) {
  const std::string text = CompareTable(Example());
  EXPECT_THAT(text, HasSubstr("2 CPUs, irqchip user, x2apic, profile native"));
  EXPECT_THAT(text, HasSubstr("serial       3      2.000  1.000..3.000  0.200"));
  EXPECT_THAT(text, HasSubstr("1.00   2/2\n"));
  EXPECT_THAT(text, HasSubstr("3.33   2/2\n"));
}

TEST(CompareTable, MarksRowsThatAreNotComplete) {
  Comparison comparison("serial");
  comparison.Add(Complete("serial", 1'000));
  comparison.Add(Complete("kick", 500));
  comparison.Add(Incomplete("kick", 10));
  EXPECT_THAT(CompareTable(comparison), HasSubstr("1/2  partial in 1 of 2\n"));
}

TEST(CompareTable, OfNothingSaysSo) {
  EXPECT_THAT(CompareTable(Comparison("serial")), HasSubstr("nothing to compare"));
}

TEST(CompareJson, RowsAreThoseOfTheTable) {
  const json tree = json::parse(CompareJson(Example()));
  EXPECT_EQ(tree["schema"], "sipi.compare/1");
  EXPECT_EQ(tree["baseline"], "serial");
  EXPECT_EQ(tree["host"]["kvm_module"], "kvm_test");
  const json& row = tree["rows"][1];
  EXPECT_EQ(row["strategy"], "kick");
  EXPECT_EQ(row["runs"], 3);
  EXPECT_EQ(row["median_ns"], 600'000);
  EXPECT_EQ(row["min_ns"], 400'000);
  EXPECT_EQ(row["max_ns"], 800'000);
  EXPECT_NEAR(row["ratio"].get<double>(), 3.33333, 1e-5);
  EXPECT_EQ(row["cpus_online"], 2);
  EXPECT_EQ(row["phases_ns"]["kick"], 60'000);
  EXPECT_EQ(row["phases_ns"]["wait_alive"], 0);
  ASSERT_EQ(row["samples"].size(), 3u);
  EXPECT_EQ(row["samples"][1]["smpboot_ns"], 800'000);
}

TEST(CompareJson, HasNullWhereThereIsNoFigure) {
  Comparison comparison("serial");
  comparison.Add(Incomplete("serial", 500));
  const json row = json::parse(CompareJson(comparison))["rows"][0];
  EXPECT_TRUE(row["ratio"].is_null());
  EXPECT_EQ(row["partial_runs"], 1);
}

}  // namespace
}  // namespace sipi
