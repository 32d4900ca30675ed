#include "vmm/report/run_json.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "nlohmann/json.hpp"
#include "tests/report/records.h"
#include "tests/support/sanitized.h"
#include "vmm/timeline/analysis.h"

namespace sipi {
namespace {

using nlohmann::json;

json Tree(const RunRecord& record) { return json::parse(RunJson(record)); }

// The text with `from` replaced by `to`, which must be there.
std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string ErrorOf(const std::string& text) {
  const absl::StatusOr<RunRecord> record = ParseRunJson(text, "run.json");
  return record.ok() ? "no error" : std::string(record.status().message());
}

TEST(RunJson, HasTheKeysOfItsSchema) {
  const json tree = Tree(SerialRun());
  EXPECT_EQ(tree["schema"], "sipi.run/1");
  EXPECT_EQ(tree["machine"], "kvm");
  EXPECT_EQ(tree["host"]["kvm_module"], "kvm_test");
  EXPECT_EQ(tree["host"]["cores"], 2);
  EXPECT_EQ(tree["irqchip"], "user");
  EXPECT_EQ(tree["apic"], "x2apic");
  EXPECT_EQ(tree["strategy"], "serial");
  EXPECT_EQ(tree["profile"], "native");
  EXPECT_EQ(tree["seed"], 7);
  EXPECT_EQ(tree["cpus_offered"], 3);
  EXPECT_EQ(tree["cpus_online"], 3);
  EXPECT_EQ(tree["smpboot_ns"], 820'000);
  EXPECT_EQ(tree["phases_ns"], json({{"kick", 80'000},
                                     {"ap_startup", 250'000},
                                     {"wait_alive", 200'000},
                                     {"starting", 160'000},
                                     {"online", 300'000}}));
  EXPECT_EQ(tree["other_ns"], 60'000);
  EXPECT_EQ(tree["counters"], json({{"exits", 12}, {"ipis", 6}}));
  EXPECT_EQ(tree["lost_events"], 0);
  EXPECT_EQ(tree["complete"], true);
  EXPECT_EQ(tree["outcome"], "complete");
  EXPECT_EQ(tree["events"].size(), SerialRun().events.size());
}

TEST(RunJson, CpusHaveTheirMilestonesAndNullWhereThereIsNone) {
  const json tree = Tree(PartialRun());
  const json& ap = tree["cpus"][1];
  EXPECT_EQ(ap["cpu"], 1);
  EXPECT_EQ(ap["apic_id"], 2);
  EXPECT_EQ(ap["kicked_ns"], 110'000);
  EXPECT_EQ(ap["first_instruction_ns"], 200'000);
  EXPECT_EQ(ap["alive_ns"], 250'000);
  EXPECT_EQ(ap["online_ns"], 500'000);
  EXPECT_EQ(tree["cpus"][2]["kicked_ns"], 510'000);
  EXPECT_TRUE(tree["cpus"][2]["alive_ns"].is_null());
  EXPECT_EQ(tree["cpus"][2]["doing"], "waiting for SIPI");
  EXPECT_EQ(tree["cpus"][2]["cpuhp_state"], "cpu:bringup");
  EXPECT_EQ(tree["phase_unfinished"]["ap_startup"], 1);
  EXPECT_EQ(tree["outcome"], "partial");
}

TEST(RunJson, EventsSayWhatTheyMean) {
  const json tree = Tree(SerialRun());
  EXPECT_EQ(tree["events"][0], json({{"t_ns", 0}, {"cpu", -1}, {"name", "vm-created"}}));
  EXPECT_EQ(tree["events"][4], json({{"t_ns", 100'000},
                                     {"cpu", 0},
                                     {"name", "cpuhp-enter"},
                                     {"target", 1},
                                     {"value", 1},
                                     {"args", {{"state", "threads:prepare"}}}}));
  const json broadcast = Tree(BroadcastRun());
  EXPECT_EQ(broadcast["events"][4]["target"], "all");
  EXPECT_EQ(broadcast["events"][4]["args"]["icr"], "startup 0x08 to all-but-self");
}

TEST(RunJson, IsReadBackAsTheSameRecord) {
  RunRecord record = PartialRun();
  record.complete = false;
  record.lost_events = 17;
  record.outcome = Outcome::kInterrupted;
  record.signal = 15;
  record.notes = {"quotes \" and \\ and\nlines", "\xC2\xB5s"};
  record.cpus[1].tsc_khz = 2'596'144;
  record.cpus[1].instructions = 0xffff'ffff'ffff'ffff;
  record.counters["exits.hlt"] = 0xffff'ffff'ffff'fffe;
  record.seed = 0xffff'ffff'ffff'fff0;
  const absl::StatusOr<RunRecord> read = ParseRunJson(RunJson(record), "test");
  ASSERT_TRUE(read.ok()) << read.status();
  // Written once more it is the same text: every field that is written was read.
  EXPECT_EQ(RunJson(*read), RunJson(record));
  EXPECT_EQ(read->notes, record.notes);
  EXPECT_EQ(read->outcome, Outcome::kInterrupted);
  EXPECT_EQ(read->cpus[2].cpuhp_state, abi::CpuhpState::kBringupCpu);
  ASSERT_EQ(read->events.size(), record.events.size());
  for (size_t i = 0; i < read->events.size(); ++i) {
    EXPECT_EQ(read->events[i].t_ns, record.events[i].t_ns);
    EXPECT_EQ(read->events[i].name, record.events[i].name);
    EXPECT_EQ(read->events[i].target, record.events[i].target);
    EXPECT_EQ(read->events[i].value, record.events[i].value);
  }
}

TEST(RunJson, FiguresAreComputedAgainFromTheFilesOwnEvents) {
  const std::string text = RunJson(BroadcastRun());
  const json tree = json::parse(text);
  const Analysis analysis = Analyze(*ParseRunJson(text, "test"));
  EXPECT_EQ(tree["smpboot_ns"], *analysis.smpboot_ns);
  for (const Phase phase : kPhases) {
    EXPECT_EQ(tree["phases_ns"][Name(phase)], analysis.phase(phase).wall_ns);
    EXPECT_EQ(tree["phase_sums_ns"][Name(phase)], analysis.phase(phase).sum_ns);
  }
  for (size_t cpu = 1; cpu < 4; ++cpu) {
    EXPECT_EQ(tree["cpus"][cpu]["online_ns"], *analysis.cpus[cpu].online_ns);
  }
  EXPECT_EQ(tree["cpus_online"], analysis.cpus_online);
}

TEST(RunJson, HundredThousandEventsComeBack) {
  RecordBuilder run(256);
  constexpr int kEvents = kSanitized ? 10'000 : 100'000;
  for (int i = 0; i < kEvents; ++i) {
    run.At(i, i % 256, abi::TraceEvent::kCpuhpEnter, static_cast<uint16_t>(i % 256), 82);
  }
  const RunRecord record = run.Take();
  const absl::StatusOr<RunRecord> read = ParseRunJson(RunJson(record), "test");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->events.size(), size_t{kEvents});
  EXPECT_EQ(read->events.back().t_ns, int64_t{kEvents - 1} * 1000);
}

TEST(RunJson, MalformedTextIsAnErrorThatNamesThePlace) {
  const std::string good = RunJson(SerialRun());
  EXPECT_EQ(ErrorOf("{\"schema\": nil}"),
            "run.json: malformed JSON at line 1, column 13 (byte 13); give a file that `sipi run "
            "--json` wrote");
  EXPECT_EQ(ErrorOf(""),
            "run.json: malformed JSON at line 1, column 1 (byte 1); give a file that `sipi run "
            "--json` wrote");
  EXPECT_EQ(ErrorOf("[]"), "run.json: the file is no object");
  EXPECT_EQ(ErrorOf("{}"), "run.json: the file has no \"schema\"");
  EXPECT_EQ(ErrorOf(Replaced(good, "sipi.run/1", "sipi.run/2")),
            "run.json: the file \"schema\" must be \"sipi.run/1\"");
  EXPECT_EQ(ErrorOf(Replaced(good, "\"cpus_offered\":3", "\"cpus_offered\":-3")),
            "run.json: the file \"cpus_offered\" is out of range: it is from 0 to 4294967295");
  EXPECT_EQ(ErrorOf(Replaced(good, "\"cpus_offered\":3", "\"cpus_offered\":4000000000")),
            "run.json: the file \"cpus_offered\" is above 65536");
  EXPECT_EQ(ErrorOf(Replaced(good, "{\"t_ns\":0,", "{\"t_ns\":\"0\",")),
            "run.json: events[0] \"t_ns\" must be a whole number");
  EXPECT_EQ(ErrorOf(Replaced(good, "\"name\":\"vm-created\"", "\"name\":\"vm-made\"")),
            "run.json: events[0] \"name\" is no event that this version knows: vm-made");
  EXPECT_EQ(ErrorOf(Replaced(good, "\"value\":1,", "\"value\":4294967296,")),
            "run.json: events[4] \"value\" is out of range: it is from 0 to 4294967295");
  EXPECT_EQ(ErrorOf(Replaced(good, "\"outcome\":\"complete\"", "\"outcome\":\"great\"")),
            "run.json: the file \"outcome\" is unknown");
}

TEST(RunJson, FileThatIsNotThereIsNamed) {
  const absl::StatusOr<RunRecord> read = ReadRunJson("/nonexistent/run.json");
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.status().message().find("/nonexistent/run.json"), absl::string_view::npos);
}

TEST(RunJson, FileIsRead) {
  const std::string path = testing::TempDir() + "/sipi_run_json_test.json";
  std::ofstream(path) << RunJson(SerialRun());
  const absl::StatusOr<RunRecord> read = ReadRunJson(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(Analyze(*read).smpboot_ns, 820'000);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace sipi
