#include "vmm/timeline/service_analysis.h"

#include <gtest/gtest.h>

#include "tests/report/service_records.h"

namespace sipi {
namespace {

using abi::GracePeriodKind;
using abi::SmtApproach;
using abi::TraceEvent;

TEST(SmtSwitches, OffAndOnOfEachApproachWithItsWaits) {
  const std::vector<SmtSwitch> switches = SmtSwitches(SmtRun());
  ASSERT_EQ(switches.size(), 4u);
  EXPECT_EQ(switches[0].approach, SmtApproach::kNone);
  EXPECT_TRUE(switches[0].off);
  EXPECT_EQ(switches[0].threads, 1u);
  EXPECT_EQ(switches[0].ns, 8'000'000);
  EXPECT_EQ(switches[0].operations, 2u);
  EXPECT_EQ(switches[0].waits.of(GracePeriodKind::kNormal), 3u);
  EXPECT_EQ(switches[0].waits.of(GracePeriodKind::kExpedited), 0u);
  EXPECT_EQ(switches[0].longest_hold_ns, 3'000'000);
  EXPECT_FALSE(switches[1].off);
  EXPECT_EQ(switches[1].threads, 2u);
  EXPECT_EQ(switches[1].ns, 4'000'000);
  EXPECT_EQ(switches[1].waits.of(GracePeriodKind::kNone), 1u);
  EXPECT_EQ(switches[2].approach, SmtApproach::kExpedite);
  EXPECT_TRUE(switches[2].off);
  EXPECT_EQ(switches[2].ns, 1'000'000);
  EXPECT_EQ(switches[2].waits.of(GracePeriodKind::kExpedited), 3u);
  EXPECT_EQ(switches[3].failed, 1u);
}

TEST(SmtSwitches, WhatNeverEndedHasNoTime) {
  RecordBuilder run(4);
  run.At(0, 0, TraceEvent::kSmtBegin, 1, 0).At(5, 1, TraceEvent::kSyncEnd, 0, 0);
  const std::vector<SmtSwitch> switches = SmtSwitches(run.Take());
  ASSERT_EQ(switches.size(), 1u);
  EXPECT_FALSE(switches[0].ns.has_value());
  EXPECT_EQ(switches[0].waits.of(GracePeriodKind::kNormal), 1u);
}

TEST(SmtSwitches, WaitsOutsideASwitchAreNobodys) {
  RecordBuilder run(4);
  run.At(0, 0, TraceEvent::kSyncEnd)
      .At(1, 0, TraceEvent::kSmtBegin, 1, 0)
      .At(2, 0, TraceEvent::kSmtEnd, 1, 0)
      .At(3, 0, TraceEvent::kSyncEnd);
  EXPECT_EQ(SmtSwitches(run.Take())[0].waits.of(GracePeriodKind::kNormal), 0u);
}

TEST(SmtSwitches, TheWriteLockMayBeGivenBackOnAnotherCpu) {
  RecordBuilder run(4);
  run.At(0, 0, TraceEvent::kSmtBegin, 1, 0)
      .At(1, 0, TraceEvent::kCpusWriteLocked)
      .At(7, 2, TraceEvent::kCpusWriteUnlock)
      .At(8, 2, TraceEvent::kSmtEnd, 1, 0);
  EXPECT_EQ(SmtSwitches(run.Take())[0].longest_hold_ns, 6'000);
}

TEST(HotplugOperations, DirectionTimeAndError) {
  RecordBuilder run(4);
  run.At(10, 0, TraceEvent::kHotplugBegin, 3, 0)
      .At(12, 3, TraceEvent::kSyncEnd, 0, 1)
      .At(30, 0, TraceEvent::kHotplugEnd, 3, 0)
      .At(40, 0, TraceEvent::kHotplugBegin, 3, static_cast<uint32_t>(abi::CpuhpState::kOnline))
      .At(45, 0, TraceEvent::kHotplugEnd, 3, 5)
      .At(50, 0, TraceEvent::kHotplugBegin, 2, 0);
  const std::vector<HotplugOperation> operations = HotplugOperations(run.Take());
  ASSERT_EQ(operations.size(), 3u);
  EXPECT_EQ(operations[0].cpu, 3u);
  EXPECT_FALSE(operations[0].up);
  EXPECT_EQ(operations[0].ns, 20'000);
  EXPECT_EQ(operations[0].error, 0u);
  EXPECT_EQ(operations[0].waits.of(GracePeriodKind::kExpedited), 1u);
  EXPECT_TRUE(operations[1].up);
  EXPECT_EQ(operations[1].error, 5u);
  EXPECT_FALSE(operations[2].ns.has_value());
}

TEST(HotplugOperations, TheLocksAreWaitedForFirst) {
  RecordBuilder run(4);
  run.At(10, 0, TraceEvent::kHotplugAsked, 3, 0)
      .At(11, 2, TraceEvent::kHotplugAsked, 1, 0)  // somebody else, who comes later
      .At(15, 0, TraceEvent::kSyncEnd)
      .At(20, 0, TraceEvent::kHotplugBegin, 3, 0)
      .At(25, 0, TraceEvent::kSyncEnd)
      .At(30, 0, TraceEvent::kHotplugEnd, 3, 0)
      .At(32, 0, TraceEvent::kCpusWriteUnlock)
      .At(33, 2, TraceEvent::kHotplugBegin, 1, 0)
      .At(40, 2, TraceEvent::kHotplugEnd, 1, 0);
  const std::vector<HotplugOperation> operations = HotplugOperations(run.Take());
  ASSERT_EQ(operations.size(), 2u);
  EXPECT_EQ(operations[0].asked_ns, 10'000);
  EXPECT_EQ(operations[0].lock_ns(), 10'000);
  EXPECT_EQ(operations[0].ns, 22'000);
  EXPECT_EQ(operations[0].waits.of(GracePeriodKind::kNormal), 2u);
  EXPECT_EQ(operations[0].lock_waits.of(GracePeriodKind::kNormal), 1u);
  EXPECT_EQ(operations[1].lock_ns(), 22'000);
  EXPECT_EQ(operations[1].ns, 29'000) << "the unlock is not in the timeline";
}

TEST(GracePeriods, NormalAndExpeditedOverlapInTime) {
  RecordBuilder run(4);
  run.At(0, 0, TraceEvent::kGpBegin, 0, 101)
      .At(10, 0, TraceEvent::kGpInit)
      .At(15, 1, TraceEvent::kExpBegin, 0, 7)
      .At(16, 2, TraceEvent::kExpSelected)
      .At(20, 1, TraceEvent::kGpFqs, 0, 3)
      .At(21, 2, TraceEvent::kExpEnd, 0, 8)
      .At(30, 1, TraceEvent::kGpFqs, 0, 1)
      .At(31, 1, TraceEvent::kGpEnd, 0, 104)
      .At(40, 1, TraceEvent::kGpBegin, 0, 105);
  const std::vector<GracePeriod> periods = GracePeriods(run.Take());
  ASSERT_EQ(periods.size(), 3u);
  EXPECT_FALSE(periods[0].expedited);
  EXPECT_EQ(periods[0].sequence, 101u);
  EXPECT_EQ(periods[0].ready_ns, 10'000);
  EXPECT_EQ(periods[0].scans_ns, (std::vector<int64_t>{20'000, 30'000}));
  EXPECT_EQ(periods[0].end_ns, 31'000);
  EXPECT_TRUE(periods[1].expedited);
  EXPECT_EQ(periods[1].ready_ns, 16'000);
  EXPECT_EQ(periods[1].end_ns, 21'000);
  EXPECT_FALSE(periods[2].end_ns.has_value());
}

TEST(ScaleMeasurements, OnlyWhatCountsIsCounted) {
  const ScaleResult result = ScaleMeasurements(ScaleRun(), false);
  ASSERT_EQ(result.durations_ns.size(), 2u);
  // The first grace period of writer 0 came before its kScaleBegin.
  EXPECT_EQ(result.durations_ns.at(0), (std::vector<int64_t>{8'000, 8'000}));
  EXPECT_EQ(result.durations_ns.at(1), (std::vector<int64_t>{7'000, 9'000, 1'000}));
  EXPECT_EQ(result.begin_ns, 20'000);
  EXPECT_EQ(result.end_ns, 45'000);
  EXPECT_EQ(result.measurements(), 5u);
  EXPECT_EQ(result.batches, 2u);  // one ended before the window, one after it
}

// Who asks is not always served as asked: rcu_expedited, rcu_normal.
TEST(ScaleMeasurements, BatchesAreOfTheKindThatServed) {
  for (const bool asked_expedited : {false, true}) {
    RunRecord record = ScaleRun();
    EXPECT_EQ(ScaleMeasurements(record, asked_expedited).batches, 2u);
    for (Event& event : record.events) {
      if (event.name == TraceEvent::kSyncEnd) event.value = 1;
    }
    const ScaleResult result = ScaleMeasurements(record, asked_expedited);
    EXPECT_EQ(result.batches, 1u);
    EXPECT_EQ(result.served_by, (std::array<bool, 2>{false, true}));
    for (Event& event : record.events) {
      if (event.name == TraceEvent::kSyncEnd) event.value = 2;  // call_rcu: none of its own
    }
    EXPECT_EQ(ScaleMeasurements(record, false).batches, 2u);
  }
}

TEST(ScaleMeasurements, AWriterThatNeverEndsLeavesTheWindowOpen) {
  RecordBuilder run(2);
  run.At(0, 0, TraceEvent::kScaleBegin)
      .At(1, 1, TraceEvent::kScaleBegin)
      .At(9, 0, TraceEvent::kScaleEnd);
  EXPECT_FALSE(ScaleMeasurements(run.Take(), false).end_ns.has_value());
}

TEST(WorkerFigures, PinnedAndRanAway) {
  RecordBuilder run(4);
  run.At(0, 0, TraceEvent::kScaleBegin)
      .At(5, 1, TraceEvent::kWorkerPinned, 1, 2'600'000)
      .At(6, 3, TraceEvent::kWorkerRanAway, 2)
      .At(7, 3, TraceEvent::kWorkerRanAway, 2)
      .At(900'000, 1, TraceEvent::kScaleEnd, 0, 30)
      .At(1'000'000, 0, TraceEvent::kScaleEnd, 0, 12);
  const WorkerResult result = WorkerFigures(run.Take());
  EXPECT_EQ(result.pinned_us, (std::map<uint32_t, uint64_t>{{1, 2'600'000}}));
  EXPECT_EQ(result.ran_away, 2u);
  EXPECT_EQ(result.ran_away_cpus, std::vector<uint32_t>{2});
  EXPECT_EQ(result.window_ns, 1'000'000'000);
  EXPECT_EQ(result.window_callbacks, 42u);
}

}  // namespace
}  // namespace sipi
