#include "vmm/timeline/analysis.h"

#include <gtest/gtest.h>

#include "tests/report/records.h"

namespace sipi {
namespace {

using abi::CpuhpState;
using abi::TraceEvent;

int64_t WallUs(const Analysis& analysis, Phase phase) {
  return analysis.phase(phase).wall_ns / 1000;
}
int64_t SumUs(const Analysis& analysis, Phase phase) { return analysis.phase(phase).sum_ns / 1000; }

TEST(Analysis, SerialRunHasTheTimesItWasMadeWith) {
  const Analysis a = Analyze(SerialRun());
  EXPECT_EQ(a.smpboot_ns, 820'000);
  EXPECT_EQ(a.cpus_online, 3u);
  EXPECT_EQ(a.cpus[1].kicked_ns, 110'000);
  EXPECT_EQ(a.cpus[1].first_instruction_ns, 200'000);
  EXPECT_EQ(a.cpus[1].alive_ns, 250'000);
  EXPECT_EQ(a.cpus[1].online_ns, 500'000);
  EXPECT_EQ(a.cpus[2].online_ns, 900'000);
  EXPECT_EQ(a.cpus[0].first_instruction_ns, 50'000);
  EXPECT_FALSE(a.cpus[0].kicked_ns.has_value());
}

TEST(Analysis, SerialPhasesDoNotOverlapSoWallIsTheSum) {
  const Analysis a = Analyze(SerialRun());
  EXPECT_EQ(WallUs(a, Phase::kKick), 2 * 40);
  EXPECT_EQ(WallUs(a, Phase::kApStartup), 2 * 125);  // from the SIPI taken, not from the one sent
  EXPECT_EQ(WallUs(a, Phase::kWaitAlive), 2 * 100);
  EXPECT_EQ(WallUs(a, Phase::kStarting), 2 * 80);
  EXPECT_EQ(WallUs(a, Phase::kOnline), 2 * 150);
  EXPECT_EQ(SumUs(a, Phase::kStarting), 2 * 80);
  EXPECT_EQ(a.phase(Phase::kOnline).median_ns, 150'000);
  EXPECT_EQ(a.phase(Phase::kKick).intervals, 2u);
  EXPECT_EQ(a.phase(Phase::kApStartup).unfinished, 0u);
}

// 20 us until the first kick, 10 from the first AP's online to the second kick, 10 behind all; and
// for each AP 10 us from the end of wait-alive until it has seen its release.
TEST(Analysis, WhatLiesInNoPhaseIsTheRestOfSmpboot) {
  EXPECT_EQ(Analyze(SerialRun()).other_ns, (20 + 10 + 10 + 2 * 10) * 1000);
  EXPECT_EQ(Analyze(BroadcastRun()).other_ns, (10 + 10) * 1000);
}

TEST(Analysis, PhasesCountWithinSmpbootOnlyAndOnceWhereTheyOverlap) {
  RecordBuilder run(3);
  run.At(0, 0, TraceEvent::kKickBegin, 1)
      .At(20, 0, TraceEvent::kSmpbootBegin)
      .At(30, 0, TraceEvent::kKickEnd, 1)
      .At(50, 0, TraceEvent::kWaitAliveBegin, 1)
      .At(60, 2, TraceEvent::kReleased)
      .At(70, 0, TraceEvent::kWaitAliveEnd, 1)
      .Enter(80, 2, 2, CpuhpState::kApOnlineIdle)
      .At(100, 0, TraceEvent::kSmpbootEnd)
      .At(130, 2, TraceEvent::kOnline, 2);
  const Analysis a = Analyze(run.Take());
  EXPECT_EQ(a.smpboot_ns, 80'000);
  EXPECT_EQ(a.other_ns, 20'000);  // from 30 to 50; kick, wait-alive, starting, online take the rest
  RecordBuilder cut_short(1);
  cut_short.At(10, 0, TraceEvent::kSmpbootBegin);
  EXPECT_FALSE(Analyze(cut_short.Take()).other_ns.has_value());
}

TEST(Analysis, BroadcastKicksAllButTheSenderAndWallIsTheUnion) {
  const Analysis a = Analyze(BroadcastRun());
  EXPECT_EQ(a.smpboot_ns, 350'000);
  EXPECT_EQ(a.cpus_online, 4u);
  EXPECT_FALSE(a.cpus[0].kicked_ns.has_value());
  for (size_t cpu = 1; cpu <= 3; ++cpu) EXPECT_EQ(a.cpus[cpu].kicked_ns, 10'000);
  EXPECT_EQ(WallUs(a, Phase::kKick), 20);
  EXPECT_EQ(a.phase(Phase::kKick).intervals, 1u);
  EXPECT_EQ(WallUs(a, Phase::kApStartup), 140 - 22);
  EXPECT_EQ(SumUs(a, Phase::kApStartup), 78 + 96 + 114);
  EXPECT_EQ(WallUs(a, Phase::kStarting), 240 - 100);
  EXPECT_EQ(SumUs(a, Phase::kStarting), 3 * 100);
  EXPECT_EQ(WallUs(a, Phase::kOnline), 340 - 200);
  EXPECT_EQ(a.phase(Phase::kWaitAlive).intervals, 0u);
  EXPECT_EQ(WallUs(a, Phase::kWaitAlive), 0);
  EXPECT_FALSE(a.phase(Phase::kWaitAlive).median_ns.has_value());
}

TEST(Analysis, CpuThatNeverStartsHasNoTimesAndCountsAsUnfinished) {
  const Analysis a = Analyze(PartialRun());
  EXPECT_EQ(a.cpus_online, 2u);
  EXPECT_EQ(a.cpus[2].kicked_ns, 510'000);
  EXPECT_FALSE(a.cpus[2].first_instruction_ns.has_value());
  EXPECT_FALSE(a.cpus[2].alive_ns.has_value());
  EXPECT_FALSE(a.cpus[2].online_ns.has_value());
  EXPECT_EQ(WallUs(a, Phase::kApStartup), 125);  // only CPU 1's
  EXPECT_EQ(a.phase(Phase::kApStartup).unfinished, 1u);
  // The control CPU did wait until it gave up; the event after that ends nothing more.
  EXPECT_EQ(WallUs(a, Phase::kWaitAlive), 100 + (10'000 - 560));
  EXPECT_EQ(a.phase(Phase::kWaitAlive).unfinished, 0u);
}

TEST(Analysis, RunThatWasCutShortHasNoSmpbootTime) {
  RecordBuilder run(2);
  run.At(10, 0, TraceEvent::kSmpbootBegin).At(20, 0, TraceEvent::kKickBegin, 1);
  const Analysis a = Analyze(run.Take());
  EXPECT_FALSE(a.smpboot_ns.has_value());
  EXPECT_EQ(a.smpboot_begin_ns, 10'000);
  EXPECT_EQ(a.phase(Phase::kKick).unfinished, 1u);
  EXPECT_EQ(a.phase(Phase::kApStartup).unfinished, 1u);
}

TEST(Analysis, EmptyTimelineHasNothing) {
  RunRecord record;
  record.cpus_offered = 2;
  const Analysis a = Analyze(record);
  EXPECT_FALSE(a.smpboot_ns.has_value());
  EXPECT_EQ(a.cpus.size(), 2u);
  EXPECT_EQ(a.cpus_online, 0u);
  for (const Phase phase : kPhases) EXPECT_EQ(a.phase(phase).intervals, 0u);
}

TEST(Analysis, HostDrivenRunIsReadFromTheVmsTrack) {
  RecordBuilder run(2);
  run.At(0, kVmTrack, TraceEvent::kSmpbootBegin)
      .At(10, kVmTrack, TraceEvent::kKickBegin, 1)
      .At(15, 1, TraceEvent::kSipiDelivered, 0, 8)
      .At(40, kVmTrack, TraceEvent::kKickEnd, 1)
      .At(41, kVmTrack, TraceEvent::kWaitAliveBegin, 1)
      .At(60, 1, TraceEvent::kAlive)
      .At(65, kVmTrack, TraceEvent::kWaitAliveEnd, 1)
      .At(90, kVmTrack, TraceEvent::kOnline, 1)
      .At(95, kVmTrack, TraceEvent::kSmpbootEnd, 0, 2);
  const Analysis a = Analyze(run.Take());
  EXPECT_EQ(a.smpboot_ns, 95'000);
  EXPECT_EQ(WallUs(a, Phase::kKick), 30);
  EXPECT_EQ(WallUs(a, Phase::kApStartup), 45);
  EXPECT_EQ(WallUs(a, Phase::kWaitAlive), 24);
  EXPECT_EQ(a.cpus[1].online_ns, 90'000);
  EXPECT_EQ(a.phase(Phase::kStarting).intervals, 0u);
}

TEST(Analysis, WithoutAVcpusOwnWordStartUpBeginsAtTheSipiSent) {
  // As with KVM's own irqchip, which does not tell when it delivers a SIPI.
  RecordBuilder run(2);
  run.At(0, 0, TraceEvent::kKickBegin, 1)
      .At(2, 0, TraceEvent::kIcrWrite, 1, 0x4500)
      .At(5, 0, TraceEvent::kIcrWrite, 1, 0x0608)
      .At(15, 0, TraceEvent::kIcrWrite, 1, 0x0608)
      .At(20, 1, TraceEvent::kAlive)
      .At(25, 0, TraceEvent::kKickEnd, 1);
  EXPECT_EQ(WallUs(Analyze(run.Take()), Phase::kApStartup), 15);
}

TEST(Analysis, WithoutAnySipiStartUpBeginsAtTheKicksEnd) {
  RecordBuilder run(2);
  run.At(0, 0, TraceEvent::kKickBegin, 1)
      .At(10, 0, TraceEvent::kKickEnd, 1)
      .At(50, 1, TraceEvent::kAlive);
  EXPECT_EQ(WallUs(Analyze(run.Take()), Phase::kApStartup), 40);
}

TEST(Analysis, RetryCountsTheTryThatWorked) {
  RecordBuilder run(2);
  run.At(0, 0, TraceEvent::kKickBegin, 1)
      .At(1, 1, TraceEvent::kSipiDelivered)
      .At(5, 0, TraceEvent::kKickEnd, 1)
      .At(1'000, 0, TraceEvent::kKickBegin, 1)
      .At(1'010, 1, TraceEvent::kSipiDelivered)
      .At(1'020, 0, TraceEvent::kKickEnd, 1)
      .At(1'110, 1, TraceEvent::kAlive);
  const Analysis a = Analyze(run.Take());
  EXPECT_EQ(WallUs(a, Phase::kApStartup), 100);
  EXPECT_EQ(a.phase(Phase::kApStartup).unfinished, 1u);
  EXPECT_EQ(a.cpus[1].kicked_ns, 0);
}

TEST(Analysis, TreeKicksOverlapAndAreCountedOnEachKicker) {
  RecordBuilder run(4);
  run.At(0, 0, TraceEvent::kKickBegin, 2)
      .At(10, 1, TraceEvent::kKickBegin, 3)
      .At(40, 0, TraceEvent::kKickEnd, 2)
      .At(50, 1, TraceEvent::kKickEnd, 3);
  const Analysis a = Analyze(run.Take());
  EXPECT_EQ(WallUs(a, Phase::kKick), 50);
  EXPECT_EQ(SumUs(a, Phase::kKick), 80);
}

TEST(Analysis, CpuhpStateLastsUntilTheNextOneOfTheSameCpu) {
  const Analysis a = Analyze(SerialRun());
  std::vector<CpuhpSpan> cpu1;
  for (const CpuhpSpan& span : a.cpuhp_spans) {
    if (span.cpu == 1) cpu1.push_back(span);
  }
  ASSERT_EQ(cpu1.size(), 6u);
  EXPECT_EQ(cpu1[1].state, CpuhpState::kKickAp);
  EXPECT_EQ(cpu1[1].begin_ns, 105'000);
  EXPECT_EQ(cpu1[1].end_ns, 155'000);
  EXPECT_EQ(cpu1[5].state, CpuhpState::kApActive);
  EXPECT_EQ(cpu1[5].end_ns, 500'000);  // its kOnline
  EXPECT_TRUE(cpu1[5].finished);
}

TEST(Analysis, CpuhpStateThatNothingEndsLastsToTheEnd) {
  const Analysis a = Analyze(PartialRun());
  const CpuhpSpan& last = a.cpuhp_spans.back();
  EXPECT_EQ(last.cpu, 2);
  EXPECT_EQ(last.state, CpuhpState::kBringupCpu);
  EXPECT_EQ(last.end_ns, 10'050'000);
  EXPECT_FALSE(last.finished);
}

TEST(Analysis, ControlCpusStepDoesNotEndTheOneThatTheApIsIn) {
  // kick+wait: the AP was let go long before the control CPU enters cpu:bringup for it.
  RecordBuilder run(2);
  run.Enter(0, 0, 1, CpuhpState::kWaitInit)
      .Enter(10, 1, 1, CpuhpState::kApOffline)
      .Enter(15, 0, 1, CpuhpState::kBringupCpu)
      .Enter(30, 1, 1, CpuhpState::kApOnlineIdle)
      .At(40, 1, TraceEvent::kOnline, 1);
  const Analysis a = Analyze(run.Take());
  ASSERT_EQ(a.cpuhp_spans.size(), 4u);
  EXPECT_EQ(a.cpuhp_spans[0].end_ns, 10'000);  // wait-init
  EXPECT_EQ(a.cpuhp_spans[1].end_ns, 30'000);  // ap:offline, whole
  EXPECT_EQ(a.cpuhp_spans[2].begin_ns, 15'000);
  EXPECT_EQ(a.cpuhp_spans[2].end_ns, 30'000);
  EXPECT_EQ(a.cpuhp_spans[3].end_ns, 40'000);
}

TEST(Analysis, ParkedCpuHasLeftItsState) {
  RecordBuilder run(2);
  run.Enter(0, 1, 1, CpuhpState::kApOffline)
      .At(5, 1, TraceEvent::kParked)
      .At(90, kVmTrack, TraceEvent::kRunEnd);
  const Analysis a = Analyze(run.Take());
  EXPECT_EQ(a.cpuhp_spans[0].end_ns, 5'000);
  EXPECT_TRUE(a.cpuhp_spans[0].finished);
}

TEST(Analysis, EventsOfCpusThatWereNotOfferedDoNoHarm) {
  RecordBuilder run(2);
  run.At(0, 9, TraceEvent::kKickBegin, 700)
      .At(1, 9, TraceEvent::kAlive)
      .Enter(2, 0, 500, CpuhpState::kApActive)
      .At(3, 0, TraceEvent::kOnline, 600)
      .At(4, -7, TraceEvent::kKickEnd, 1);
  EXPECT_EQ(Analyze(run.Take()).cpus_online, 0u);
}

// CPU 1 goes off and on after bring-up, with kicks and all.
TEST(Analysis, HotplugAfterBringUpIsInNoPhase) {
  const Analysis before = Analyze(SerialRun());
  RunRecord record = SerialRun();
  const int64_t end = record.events.back().t_ns;
  const auto add = [&](int64_t t_us, int32_t cpu, TraceEvent name, uint16_t target) {
    record.events.push_back(
        {.t_ns = end + t_us * 1000, .cpu = cpu, .name = name, .target = target});
  };
  add(10, 0, TraceEvent::kHotplugBegin, 1);
  add(20, 0, TraceEvent::kKickBegin, 1);
  add(30, 0, TraceEvent::kKickEnd, 1);
  add(40, 1, TraceEvent::kAlive, 0);
  add(50, 0, TraceEvent::kKickBegin, 1);
  const Analysis after = Analyze(record);
  for (const Phase phase : kPhases) {
    EXPECT_EQ(after.phase(phase).wall_ns, before.phase(phase).wall_ns) << Name(phase);
    EXPECT_EQ(after.phase(phase).intervals, before.phase(phase).intervals) << Name(phase);
    EXPECT_EQ(after.phase(phase).unfinished, 0u) << Name(phase);
  }
}

}  // namespace
}  // namespace sipi
