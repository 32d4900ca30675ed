// Runs of other people's guests: their JSON and their table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "tests/report/records.h"
#include "vmm/report/payload_table.h"
#include "vmm/report/run_json.h"

namespace sipi {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

// Three CPUs; AP n has its INIT at 100 n, its SIPI at 100 n + 10 and runs at 100 n + 30 n us.
RunRecord PayloadRun() {
  using abi::TraceEvent;
  RecordBuilder run(3);
  run.At(0, kVmTrack, TraceEvent::kVmCreated).At(10, 0, TraceEvent::kFirstRun);
  for (int32_t ap = 1; ap < 3; ++ap) {
    run.At(100 * ap, ap, TraceEvent::kInitDelivered)
        .At(100 * ap + 10, ap, TraceEvent::kSipiDelivered, 0, 0)
        .At(100 * ap + 30 * ap, ap, TraceEvent::kFirstRun);
  }
  run.At(400, kVmTrack, TraceEvent::kRunEnd);
  RunRecord record = run.Take();
  record.strategy = "";
  record.driver = "";
  record.cpus_online = 3;
  record.outcome = Outcome::kGuestExit;
  record.payload = PayloadResult{.file = "x86/smptest.flat", .kind = "multiboot", .exit_status = 3};
  return record;
}

TEST(PayloadJson, HasThePayloadAndItsOutcome) {
  const json tree = json::parse(RunJson(PayloadRun()));
  EXPECT_EQ(tree["payload"],
            json({{"file", "x86/smptest.flat"}, {"kind", "multiboot"}, {"exit_status", 3}}));
  EXPECT_EQ(tree["outcome"], "guest-exit");
  EXPECT_TRUE(tree["smpboot_ns"].is_null());
}

// No handshake, no cpuhp, no calibration that sipi could know of.
TEST(PayloadJson, CpusHaveTheKeysThatAPayloadHas) {
  const json tree = json::parse(RunJson(PayloadRun()));
  for (const json& cpu : tree["cpus"]) {
    std::set<std::string> keys;
    for (const auto& [key, value] : cpu.items()) keys.insert(key);
    EXPECT_EQ(keys, (std::set<std::string>{"cpu", "apic_id", "online", "instructions", "doing"}));
  }
  EXPECT_TRUE(json::parse(RunJson(SerialRun()))["cpus"][0].contains("sync_state"));
}

TEST(PayloadJson, OwnGuestsRunsHaveNoPayload) {
  EXPECT_FALSE(json::parse(RunJson(SerialRun())).contains("payload"));
  const absl::StatusOr<RunRecord> read = ParseRunJson(RunJson(SerialRun()), "test");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_FALSE(read->payload.has_value());
}

TEST(PayloadJson, IsReadBackAsTheSameRecord) {
  for (const auto& [outcome, status] :
       {std::pair(Outcome::kGuestExit, 255), std::pair(Outcome::kGuestReset, 0)}) {
    RunRecord record = PayloadRun();
    record.outcome = outcome;
    record.payload->exit_status = static_cast<uint8_t>(status);
    const absl::StatusOr<RunRecord> read = ParseRunJson(RunJson(record), "test");
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(RunJson(*read), RunJson(record));
    ASSERT_TRUE(read->payload.has_value());
    EXPECT_EQ(read->payload->file, "x86/smptest.flat");
    EXPECT_EQ(read->payload->kind, "multiboot");
    EXPECT_EQ(read->payload->exit_status, status);
    EXPECT_EQ(read->outcome, outcome);
  }
}

TEST(PayloadJson, AMalformedPayloadIsNamed) {
  const auto error_of = [](const json& payload) {
    json tree = json::parse(RunJson(PayloadRun()));
    tree["payload"] = payload;
    const absl::StatusOr<RunRecord> read = ParseRunJson(tree.dump(), "run.json");
    return read.ok() ? "no error" : std::string(read.status().message());
  };
  EXPECT_THAT(error_of(7), HasSubstr("run.json: payload is no object"));
  EXPECT_THAT(error_of({{"file", "x"}, {"kind", "PVH"}}), HasSubstr("has no \"exit_status\""));
  EXPECT_THAT(error_of({{"file", "x"}, {"kind", "PVH"}, {"exit_status", 256}}),
              HasSubstr("\"exit_status\" is out of range"));
  EXPECT_THAT(error_of({{"file", 1}, {"kind", "PVH"}, {"exit_status", 1}}),
              HasSubstr("\"file\" must be a string"));
}

TEST(PayloadTable, SaysWhatRanHowItEndedAndWhenTheApsStarted) {
  const std::string text = PayloadTable(PayloadRun());
  EXPECT_THAT(text, HasSubstr("payload x86/smptest.flat (multiboot), irqchip user, x2apic, profile "
                              "native\n"));
  EXPECT_THAT(text, HasSubstr("guest-exit: status 3; 3 of 3 CPUs started, 400.0 us from the VM's "
                              "creation to its end\n"));
  EXPECT_THAT(text, HasSubstr("INIT to SIPI, as delivered     2    10.0       10.0    10.0\n"));
  EXPECT_THAT(text, HasSubstr("SIPI delivered to first run    2    20.0       35.0    50.0\n"));
  EXPECT_THAT(text, HasSubstr("exits       12\n"));
  EXPECT_THAT(text, Not(HasSubstr("vCPU made to first run"))) << "nobody was made in this record";
}

TEST(PayloadTable, SaysWhyARunDidNotEndByItself) {
  RunRecord record = PayloadRun();
  record.outcome = Outcome::kGuestReset;
  record.diagnosis = "CPU 0 reset the machine through port 0x64";
  record.notes = {"7 events of the timeline were lost"};
  const std::string text = PayloadTable(record);
  EXPECT_THAT(text, HasSubstr("guest-reset; 3 of 3 CPUs started"));
  EXPECT_THAT(text, HasSubstr("\nCPU 0 reset the machine through port 0x64\n"));
  EXPECT_THAT(text, HasSubstr("note: 7 events of the timeline were lost\n"));
  EXPECT_THAT(text, Not(HasSubstr("status")));
}

TEST(PayloadTable, OfARunWithoutEventsIsWhole) {
  RunRecord record = PayloadRun();
  record.events.clear();
  EXPECT_THAT(PayloadTable(record), HasSubstr("0 ns from the VM's creation"));
}

}  // namespace
}  // namespace sipi
