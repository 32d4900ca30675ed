#include "vmm/report/run_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "guest/abi/percpu.h"
#include "tests/report/records.h"

namespace sipi {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(RunTable, SaysOutcomeTimesAndPhases) {
  const std::string text = RunTable(SerialRun());
  EXPECT_THAT(text, HasSubstr("strategy serial, irqchip user, x2apic, profile native"));
  EXPECT_THAT(text, HasSubstr("complete: 3 of 3 CPUs online, smpboot 820.0 us\n"));
  EXPECT_THAT(text, HasSubstr("ap_startup    0.250   0.250      125.0      2\n"));
  EXPECT_THAT(text, HasSubstr("other         0.060\n"));
  EXPECT_THAT(text, HasSubstr("first instruction     2    90.0       90.0    90.0\n"));
  EXPECT_THAT(text, HasSubstr("exits       12\n"));
  EXPECT_THAT(text, Not(HasSubstr("is not online")));
  EXPECT_THAT(text, Not(HasSubstr("note:")));
}

TEST(RunTable, NamesTheCpuThatIsMissingAndWhatItDid) {
  const std::string text = RunTable(PartialRun());
  EXPECT_THAT(text, HasSubstr("partial: 2 of 3 CPUs online"));
  EXPECT_THAT(text, HasSubstr("CPU 2 did not report alive within 9 ms\n"));
  EXPECT_THAT(text, HasSubstr("CPU 2 (APIC ID 4) is not online: handshake should-die, state "
                              "cpu:bringup, gave no sign of life in time, waiting for SIPI\n"));
}

TEST(RunTable, ShortensALongListOfMissingCpus) {
  RecordBuilder run(40);
  for (uint32_t cpu : {0u, 20u}) run.Online(cpu);
  const std::string text = RunTable(run.Take());
  EXPECT_THAT(text, HasSubstr("CPU 16 (APIC ID 32) is not online"));
  EXPECT_THAT(text, Not(HasSubstr("CPU 17 (APIC ID")));
  EXPECT_THAT(text, HasSubstr("and 22 more: CPUs 17-19,21-39\n"));
}

TEST(RunTable, LeavesOutSiblingsThatNobodyWants) {
  RecordBuilder run(4);
  for (const uint32_t cpu : {0u, 2u}) run.Online(cpu);
  RunRecord record = run.Take();
  record.outcome = Outcome::kComplete;
  record.smt_control = "off";
  record.cpus_wanted = 2;
  record.cpus[1].wanted = false;
  record.cpus[3].wanted = false;
  const std::string text = RunTable(record);
  EXPECT_THAT(text,
              HasSubstr("complete: 2 of 2 CPUs online, SMT control off leaves 2 siblings out"));
  EXPECT_THAT(text, Not(HasSubstr("is not online")));
}

TEST(RunTable, SaysWhatCameOfEachSecondTry) {
  RecordBuilder run(4);
  for (const uint32_t cpu : {0u, 1u, 2u}) run.Online(cpu);
  RunRecord record = run.Take();
  record.cpus[2].retried = true;
  record.cpus[2].first_error = static_cast<uint32_t>(abi::GuestError::kTimeoutAlive);
  record.cpus[3].retried = true;
  record.cpus[3].first_error = static_cast<uint32_t>(abi::GuestError::kTimeoutAlive);
  record.cpus[3].error = static_cast<uint32_t>(abi::GuestError::kStepFailed);
  const std::string text = RunTable(record);
  EXPECT_THAT(text, HasSubstr("CPU 2 (APIC ID 4) was brought up once more: first gave no sign of "
                              "life in time, then online\n"));
  EXPECT_THAT(text, HasSubstr("CPU 3 (APIC ID 6) was brought up once more: first gave no sign of "
                              "life in time, then a cpuhp step failed\n"));
  EXPECT_THAT(text, Not(HasSubstr("CPU 1 (APIC ID 2) was brought up")));
}

TEST(RunTable, NamesTheStepThatFailed) {
  RecordBuilder run(4);
  for (const uint32_t cpu : {0u, 2u}) run.Online(cpu);
  using abi::CpuhpState;
  const auto fails = [&run](int64_t t_us, uint16_t cpu, CpuhpState state) {
    run.At(t_us, 0, abi::TraceEvent::kStepFailed, cpu, static_cast<uint32_t>(state));
  };
  fails(10, 1, static_cast<CpuhpState>(234));
  fails(15, 1, CpuhpState::kBringupCpu);  // since the AP's has failed
  fails(20, 2, CpuhpState::kBringupCpu);
  fails(30, 3, CpuhpState::kKickAp);
  run.At(35, 0, abi::TraceEvent::kRetry, 3, 3);
  fails(40, 3, CpuhpState::kApOnlineIdle);
  RunRecord record = run.Take();
  record.outcome = Outcome::kPartial;
  for (const uint32_t cpu : {1u, 3u}) {
    record.cpus[cpu].error = static_cast<uint32_t>(abi::GuestError::kStepFailed);
  }
  record.cpus[3].retried = true;
  record.cpus[3].first_error = static_cast<uint32_t>(abi::GuestError::kStepFailed);
  const std::string text = RunTable(record);
  EXPECT_THAT(text, HasSubstr("CPU 1 (APIC ID 2) is not online: handshake dead, state offline, "
                              "cpuhp step sched:active failed\n"));
  EXPECT_THAT(text, HasSubstr("CPU 3 (APIC ID 6) was brought up once more: first cpuhp step "
                              "cpu:kick_ap failed, then cpuhp step ap:online-idle failed\n"));
}

// Names and numbers of any length: one column each.
TEST(RunTable, CountersStandInTwoColumns) {
  RunRecord record = SerialRun();
  record.counters = {{"exits", 1'234'567'890}, {"exits.irq_window_of_some_kind", 7}, {"ipis", 12}};
  EXPECT_THAT(RunTable(record), HasSubstr("\ncounter                             value\n"
                                          "-----------------------------  ----------\n"
                                          "exits                          1234567890\n"
                                          "exits.irq_window_of_some_kind           7\n"
                                          "ipis                                   12\n"));
}

TEST(RunTable, SaysWhatWasLostAndCutShort) {
  RunRecord record = SerialRun();
  record.lost_events = 5;
  record.complete = false;
  record.notes = {"parallel bring-up was refused"};
  record.outcome = Outcome::kInterrupted;
  record.signal = 2;
  const std::string text = RunTable(record);
  EXPECT_THAT(text, HasSubstr("interrupted by signal 2: 3 of 3"));
  EXPECT_THAT(text, HasSubstr("; the timeline ends early"));
  EXPECT_THAT(text, HasSubstr("; 5 events were lost"));
  EXPECT_THAT(text, HasSubstr("note: parallel bring-up was refused\n"));
}

TEST(CpuRanges, JoinsNeighbours) {
  EXPECT_EQ(CpuRanges({}), "");
  EXPECT_EQ(CpuRanges({5}), "5");
  EXPECT_EQ(CpuRanges({0, 1, 2, 3, 5, 9, 10}), "0-3,5,9-10");
}

}  // namespace
}  // namespace sipi
