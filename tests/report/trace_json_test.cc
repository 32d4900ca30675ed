#include "vmm/report/trace_json.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "nlohmann/json.hpp"
#include "tests/report/records.h"
#include "tests/support/trace_rules.h"
#include "vmm/report/run_json.h"

namespace sipi {
namespace {

using abi::TraceEvent;

constexpr int kVmTid = 1;
constexpr int kBootTid = 2;
constexpr int Tid(int cpu) { return cpu + 2; }

TraceContents Checked(const RunRecord& record) {
  TraceContents contents = CheckTrace(TraceJson(record));
  EXPECT_TRUE(contents.violations.empty()) << contents.violations[0];
  return contents;
}

// "name begin..end" in microseconds, of a category.
std::vector<std::string> Spans(const TraceContents& contents, int tid, const char* category) {
  std::vector<std::string> found;
  const auto spans = contents.spans.find(tid);
  if (spans == contents.spans.end()) return found;
  for (const TraceSpan& span : spans->second) {
    if (span.category != category) continue;
    found.push_back(span.name + " " + std::to_string(static_cast<int>(span.ts_us)) + ".." +
                    std::to_string(static_cast<int>(span.ts_us + span.dur_us)));
  }
  return found;
}

using Strings = std::vector<std::string>;

TEST(TraceJson, HasOneTrackPerCpuAndOneForTheVm) {
  const TraceContents contents = Checked(SerialRun());
  EXPECT_EQ(contents.track_names.size(), 4u);
  EXPECT_EQ(contents.track_names.at(kVmTid), "VM");
  EXPECT_EQ(contents.track_names.at(kBootTid), "CPU 0 (APIC 0)");
  EXPECT_EQ(contents.track_names.at(Tid(2)), "CPU 2 (APIC 4)");
}

// A trace that lies around says of itself where it is from.
TEST(TraceJson, SaysWhatWasRunWhere) {
  RunRecord record = SerialRun();
  record.machine = "sim";
  record.seed = 42;
  record.host = {.kvm_module = "kvm_amd", .cpu = "EPYC", .cores = 2, .kernel = "6.1"};
  const auto other = nlohmann::json::parse(TraceJson(record))["otherData"];
  EXPECT_EQ(other["schema"], "sipi.trace/1");
  EXPECT_EQ(other["machine"], "sim");
  EXPECT_EQ(other["seed"], 42);
  EXPECT_EQ(other["cpus_offered"], 3);
  EXPECT_EQ(other["host"], nlohmann::json::parse(RunJson(record))["host"]);
  EXPECT_EQ(other["host"]["cpu"], "EPYC");
}

TEST(TraceJson, ShowsTheStatesOfACpuOnItsOwnTrackWhoeverTakesTheStep) {
  const TraceContents contents = Checked(SerialRun());
  EXPECT_EQ(Spans(contents, Tid(1), "cpuhp"),
            Strings({"threads:prepare 100..105", "cpu:kick_ap 105..155", "cpu:bringup 155..270",
                     "ap:offline 270..350", "ap:online-idle 350..400", "sched:active 400..500"}));
  EXPECT_TRUE(Spans(contents, kBootTid, "cpuhp").empty());
}

TEST(TraceJson, ShowsTheHandshakeCutWhereItCrossesAState) {
  EXPECT_EQ(Spans(Checked(SerialRun()), Tid(1), "handshake"),
            Strings({"kicked 110..155", "kicked 155..250", "alive 250..265",
                     "should-online 265..270", "should-online 270..350", "online 350..950"}));
}

TEST(TraceJson, SerialIsAStaircaseAndBroadcastAWall) {
  const auto kicked_at = [](const TraceContents& contents, int cpu) {
    for (const TraceSpan& span : contents.spans.at(Tid(cpu))) {
      if (span.name == "kicked") return span.ts_us;
    }
    return -1.0;
  };
  const TraceContents serial = Checked(SerialRun());
  EXPECT_GT(kicked_at(serial, 2), 500.0);  // after CPU 1 is online
  const TraceContents broadcast = Checked(BroadcastRun());
  EXPECT_EQ(kicked_at(broadcast, 1), 10.0);
  EXPECT_EQ(kicked_at(broadcast, 3), 10.0);
}

TEST(TraceJson, ShowsWhatTheControlCpuDoes) {
  EXPECT_EQ(Spans(Checked(SerialRun()), kBootTid, "control"),
            Strings({"smpboot 90..910", "pass 0 95..905", "kick 110..150", "wait-alive 160..260",
                     "kick 510..550", "wait-alive 560..660"}));
}

TEST(TraceJson, HasInstantsForIcrWritesSipisAndFirstInstructions) {
  const TraceContents contents = Checked(SerialRun());
  EXPECT_EQ(std::count(contents.instants.at(kBootTid).begin(), contents.instants.at(kBootTid).end(),
                       "icr-write"),
            6);
  EXPECT_EQ(contents.instants.at(Tid(1)), Strings({"sipi-delivered", "first-instruction",
                                                   "long-mode", "alive", "released", "online"}));
  EXPECT_EQ(contents.instants.at(kVmTid), Strings({"vm-created", "run-end"}));
}

TEST(TraceJson, TimesKeepTheirNanoseconds) {
  RecordBuilder run(1);
  run.At(0, 0, TraceEvent::kBootEntry);
  run.record().events.push_back({.t_ns = 1'234'567, .cpu = 0, .name = TraceEvent::kFault});
  EXPECT_NE(TraceJson(run.Take()).find("\"ts\":1234.567"), std::string::npos);
}

TEST(TraceJson, MarksSpansWhoseEndWasNotSeen) {
  RecordBuilder run(2);
  run.At(0, 0, TraceEvent::kSmpbootBegin)
      .At(10, 0, TraceEvent::kKickBegin, 1)
      .At(20, 1, TraceEvent::kImposedBegin, 0, 1)
      .At(30, kVmTrack, TraceEvent::kRunEnd);
  const std::string text = TraceJson(run.Take());
  const TraceContents contents = CheckTrace(text);
  EXPECT_TRUE(contents.violations.empty());
  EXPECT_EQ(Spans(contents, kBootTid, "control"), Strings({"smpboot 0..30", "kick 10..30"}));
  EXPECT_EQ(Spans(contents, Tid(1), "own"), Strings({"imposed: startup 20..30"}));
  EXPECT_NE(text.find("\"target\":1,\"unfinished\":true"), std::string::npos);
}

TEST(TraceJson, AnEndWhoseBeginWasLostIsShownAsAnInstant) {
  RecordBuilder run(1);
  run.At(5, 0, TraceEvent::kCalibrateEnd, 0, 2'596'144);
  EXPECT_EQ(Checked(run.Take()).instants.at(kBootTid), Strings({"calibrate-end"}));
}

TEST(TraceJson, ACpuThatIsGivenUpShouldDieUntilItParks) {
  RecordBuilder run(2);
  run.At(0, 0, TraceEvent::kKickBegin, 1)
      .At(10, 0, TraceEvent::kKickEnd, 1)
      .At(100, 0, TraceEvent::kTimeout, 1, 1)
      .At(150, 1, TraceEvent::kParked)
      .At(200, kVmTrack, TraceEvent::kRunEnd);
  EXPECT_EQ(Spans(Checked(run.Take()), Tid(1), "handshake"),
            Strings({"kicked 0..100", "should-die 100..150"}));
}

TEST(TraceJson, IsValidForAnyStrings) {
  RunRecord record = SerialRun();
  record.strategy = "a\"b\\\n\xff";
  const TraceContents contents = Checked(record);
  EXPECT_EQ(contents.track_names.size(), 4u);
}

TEST(TraceJson, OfAnEmptyTimelineIsValid) {
  RunRecord record;
  record.cpus_offered = 2;
  EXPECT_EQ(Checked(record).track_names.size(), 3u);
}

TEST(TraceJson, KeepsTheRulesForAnyOrderOfEvents) {
  // A faulty guest, or one whose rings were full, may leave any events behind in any order.
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    RecordBuilder run(4);
    for (int i = 0; i < 80; ++i) {
      const auto name = static_cast<TraceEvent>(1 + random() % (random() % 2 == 0 ? 34 : 143));
      if (abi::Name(name)[0] == '?') continue;
      const auto cpu = static_cast<int32_t>(random() % 6) - 1;
      const auto target =
          static_cast<uint16_t>(random() % 8 == 0 ? abi::kAllTargets : random() % 5);
      const auto value = random() % 3 == 0 ? random() % 300 : 143;
      run.At(i / 2, cpu, name, target, static_cast<uint32_t>(value));
    }
    const TraceContents contents = CheckTrace(TraceJson(run.Take()));
    ASSERT_TRUE(contents.violations.empty()) << round << ": " << contents.violations[0];
  }
}

}  // namespace
}  // namespace sipi
