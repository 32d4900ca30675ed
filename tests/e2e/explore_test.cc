// `sipi explore` as a user runs it: states that go on, shards that are merged, saved cases.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "tests/e2e/command.h"

namespace sipi::e2e {
namespace {

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Finished Explore(std::vector<std::string> args) {
  args.insert(args.begin(), {"explore", "--quiet"});
  return Sipi(args);
}

TEST(Explore, AStateGoesOnWithItsOwnCampaignOnly) {
  const std::string state = "--state=" + TempPath("ex.json");
  const std::string all = "--schedules=600";
  const Finished first = Explore({all, state});
  EXPECT_EQ(first.status, 0) << first.err;
  EXPECT_TRUE(Contains(first.out, "600 of 600 schedules done")) << first.out;
  EXPECT_EQ(Explore({all, state, "--jobs=1"}).status, 0);
  for (const char* other : {"--scenario=rcu", "--cpus=3", "--faults=off", "--strategy=tree",
                            "--retry=on", "--seed=5", "--shard=1/2"}) {
    const Finished refused = Explore({all, state, other});
    EXPECT_EQ(refused.status, 2) << other << refused.out;
    EXPECT_TRUE(Contains(refused.err, "ex.json is another campaign's: ")) << refused.err;
  }
}

TEST(Explore, AMergeTellsWhatIsMissing) {
  const std::string one = TempPath("1.json");
  const std::string two = TempPath("2.json");
  for (const auto& [shard, path] : {std::pair("--shard=1/2", one), {"--shard=2/2", two}}) {
    ASSERT_EQ(Explore({"--schedules=600", shard, "--state=" + path}).status, 0);
  }
  EXPECT_EQ(Explore({"--merge=" + one + "," + two}).status, 0);
  const Finished half = Explore({"--merge=" + two});
  EXPECT_EQ(half.status, 3);
  EXPECT_TRUE(Contains(half.out, "300 of 600 schedules done")) << half.out;
  EXPECT_TRUE(Contains(half.out, "missing: shard 1 of 2")) << half.out;
  const Finished twice = Explore({"--merge=" + one + "," + one});
  EXPECT_EQ(twice.status, 2);
  EXPECT_TRUE(Contains(twice.err, "--merge: " + one + " is shard 1/2, and so is")) << twice.err;
}

TEST(Explore, SaysThatThereIsNothingToSave) {
  const std::string path = TempPath("case.json");
  for (const char* what : {"--replay=1", "--schedules=1"}) {
    const Finished f = Explore({what, "--save=" + path});
    EXPECT_EQ(f.status, 0) << f.err;
    EXPECT_TRUE(Contains(f.out, "--save: no case fails, so " + path + " is not written")) << f.out;
    EXPECT_NE(access(path.c_str(), F_OK), 0);
  }
}

// Another build draws other cases, or has another kernel: its file is run with a note.
TEST(Explore, AnotherBuildsCaseIsReplayedWithANote) {
  const std::string path = TempPath("old.json");
  std::ofstream(path) << R"({"schema":"sipi.explore.case/2","version":"0.0.1","cases":"0123",)"
                      << R"("seed":7,"cpus":0,"scenario":"smpboot","strategy":null,)"
                      << R"("faults":true,"retry":null,"left_out":["schedule"]})";
  const Finished f = Explore({"--replay=" + path});
  EXPECT_EQ(f.status, 0) << f.err;
  EXPECT_TRUE(Contains(f.err, "--replay: " + path + ": was saved by another build of sipi (0.0.1"))
      << f.err;
  EXPECT_TRUE(Contains(f.err, "Replay it with the build that saved it")) << f.err;
  EXPECT_TRUE(Contains(f.out, "nothing is wrong")) << f.out;
}

TEST(Explore, AnUnwritableStateIsNotSentToStandardOutput) {
  const Finished f = Explore({"--schedules=1", "--state=/proc/none/x.json"});
  EXPECT_EQ(f.status, 2);
  EXPECT_TRUE(Contains(f.err, "--state: /proc/none/x.json")) << f.err;
  EXPECT_TRUE(Contains(f.err, "name a file in a directory that can be written")) << f.err;
  EXPECT_FALSE(Contains(f.err, "standard output")) << f.err;
}

TEST(Explore, AFileThatIsNoJsonIsNamedWithItsPlace) {
  const std::string path = TempPath("bad.json");
  std::ofstream(path) << "{\"schema\":\n  oops";
  for (const char* flag : {"--state", "--merge", "--replay"}) {
    const Finished f = Explore({flag + ("=" + path)});
    EXPECT_EQ(f.status, 2);
    EXPECT_TRUE(Contains(f.err, flag + (": " + path) + ": malformed JSON at line 2")) << f.err;
    EXPECT_FALSE(Contains(f.err, "exception")) << f.err;
  }
}

}  // namespace
}  // namespace sipi::e2e
