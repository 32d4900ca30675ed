// What the command does to files, limits and readers that it finds. Needs no KVM.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/e2e/command.h"
#include "tests/support/sanitized.h"

namespace sipi::e2e {
namespace {

using nlohmann::json;

std::string FileWith(const std::string& name, const std::string& text) {
  const std::string path = TempPath(name);
  std::ofstream(path) << text;
  return path;
}

bool Mentions(const Finished& finished, const std::string& text) {
  return finished.err.find(text) != std::string::npos;
}

How WithAddressSpace(rlim_t bytes) {
  return {.in_child = [bytes] {
    const rlimit limit = {bytes, bytes};
    setrlimit(RLIMIT_AS, &limit);
  }};
}

TEST(Limits, ExploringWithMoreJobsThanTheHostHasRoomForSaysSo) {
  if (kShadowed) GTEST_SKIP() << "no limit of address space under sanitizers";
  for (const char* schedule : {"--schedule=random", "--schedule=exhaustive"}) {
    for (const char* jobs : {"--jobs=1024", "--jobs=64", "--jobs=4"}) {
      const Finished f = Sipi({"explore", schedule, "--schedules=3000", jobs, "--quiet"},
                              WithAddressSpace(24 << 20));
      EXPECT_EQ(f.status, 1) << schedule << jobs << f.out << f.err;
      EXPECT_TRUE(Mentions(f, "ulimit")) << f.err;
      EXPECT_EQ(f.out.find("made small"), std::string::npos) << "the host's, not the guest's fault";
    }
  }
}

TEST(Limits, TheStateIsWrittenWhereNoThreadCanBeMade) {
  if (kShadowed) GTEST_SKIP() << "no limit of address space under sanitizers";
  const std::string state = TempPath("state.json");
  const Finished f =
      Sipi({"explore", "--schedules=5000", "--jobs=1024", "--quiet", "--state=" + state},
           WithAddressSpace(60'000 << 10));
  EXPECT_EQ(f.status, 1) << f.err;
  EXPECT_TRUE(Mentions(f, "--jobs: thread ")) << f.err;
  EXPECT_TRUE(Mentions(f, "ulimit -u")) << f.err;
  const json written = json::parse(ReadWholeFile(state), nullptr, false);
  ASSERT_TRUE(written.is_object());
  EXPECT_LT(written["done"], 5000);
}

// A campaign that is killed has left most of what it did.
TEST(State, IsKeptWhileTheCampaignGoesOn) {
  const std::string state = TempPath("state.json");
  const auto kill_once_kept = [&state](int pid) {
    for (int tries = 0; tries < 6'000; ++tries) {
      const json kept = json::parse(ReadWholeFile(state), nullptr, false);
      if (kept.is_object() && kept["done"] > 0) break;
      usleep(10'000);
    }
    kill(pid, SIGKILL);
  };
  const Finished f =
      Sipi({"explore", "--schedules=1000000000", "--cpus=2", "--quiet", "--state=" + state},
           {.timeout_s = 120, .while_running = kill_once_kept});
  EXPECT_EQ(f.status, 128 + SIGKILL) << f.err;
  const json kept = json::parse(ReadWholeFile(state), nullptr, false);
  ASSERT_TRUE(kept.is_object());
  EXPECT_GT(kept["done"], 0);
}

TEST(Outputs, ReachASlowReaderOfANonBlockingPipe) {
  const How non_blocking = {.in_child = [] { fcntl(1, F_SETFL, O_NONBLOCK); }};
  const Finished f =
      Sipi({"run", "--machine=sim", "--cpus=200", "--serial=none", "--json=-"}, non_blocking);
  EXPECT_EQ(f.status, 0) << f.err;
  EXPECT_GT(f.out.size(), 200'000u);
  EXPECT_TRUE(json::accept(f.out));
}

TEST(Outputs, AreLeftAloneWhereNoMachineComesToBe) {
  const std::string file = FileWith("keep.txt", "kept");
  const Finished f = Sipi({"run", "--kvm-device=/nonexistent", "--serial=" + file});
  EXPECT_NE(f.status, 0);
  EXPECT_EQ(ReadWholeFile(file), "kept");
}

TEST(Outputs, NeverReplaceWhatTheCommandReads) {
  const std::string file = FileWith("input.json", "{}");
  const std::string out = TempPath("out.json");
  const std::vector<std::vector<std::string>> commands = {
      {"run", "--payload=" + file, "--serial=" + file},
      {"run", "--payload=" + file, "--json=" + file},
      {"run", "--machine=sim", "--profile=" + file, "--trace=" + file},
      {"smt", "--machine=sim", "--cpus=4", "--topology=threads=2", "--profile=" + file,
       "--html=" + file},
      {"rcu", "scale", "--machine=sim", "--profile=" + file, "--serial=" + file},
      {"compare", "--machine=sim", "--profile=" + file, "--json=" + file},
      {"params", "--profile=" + file, "--out=" + file},
      {"explore", "--merge=" + file + "," + out, "--save=" + file},
  };
  for (const std::vector<std::string>& command : commands) {
    const Finished f = Sipi(command);
    EXPECT_EQ(f.status, 2) << command[0] << f.err;
    EXPECT_TRUE(Mentions(f, "would overwrite") || Mentions(f, "--merge runs nothing"))
        << command.back() << ": " << f.err;
    EXPECT_EQ(ReadWholeFile(file), "{}") << command[0];
  }
}

TEST(Outputs, DoNotShareAFile) {
  const std::string file = FileWith("same.json", "kept");
  const std::vector<std::vector<std::string>> commands = {
      {"run", "--machine=sim", "--serial=" + file, "--json=" + file},
      {"compare", "--machine=sim", "--serial=" + file, "--json=" + file},
      {"smt", "--machine=sim", "--cpus=4", "--topology=threads=2", "--html=" + file,
       "--json=" + file},
      {"rcu", "callrcu", "--machine=sim", "--pinning=lazy", "--trace=" + file, "--json=" + file},
      {"explore", "--state=" + file, "--save=" + file},
  };
  for (const std::vector<std::string>& command : commands) {
    const Finished f = Sipi(command);
    EXPECT_EQ(f.status, 2) << command[0] << f.err;
    EXPECT_TRUE(Mentions(f, "both name " + file)) << command[0] << f.err;
    EXPECT_EQ(ReadWholeFile(file), "kept") << command[0];
  }
}

// What the guest said is output too.
TEST(Outputs, SerialOutputThatCannotBeWrittenIsAFailureAndSaidInQuiet) {
  for (const char* command : {"run", "compare"}) {
    const Finished f = Sipi({command, "--machine=sim", "--cpus=2", "--scenario=print", "--quiet",
                             "--scenario-value=1000", "--serial=/dev/full"});
    EXPECT_EQ(f.status, 1) << command << f.err;
    EXPECT_TRUE(Mentions(f, "dropped (No space left on device); give --serial another")) << f.err;
  }
}

TEST(Outputs, AreTriedBeforeTheFirstRun) {
  const std::string file = FileWith("file", "kept");
  for (const std::string& dir : {std::string("/dev/full"), file}) {
    const Finished f = Sipi({"compare", "--machine=sim", "--cpus=2", "--runs-dir=" + dir});
    EXPECT_EQ(f.status, 2) << dir;
    EXPECT_TRUE(Mentions(f, "--runs-dir: " + dir + " is no directory")) << f.err;
  }
  const std::string dir = TempPath("runs");
  const Finished named = Sipi({"compare", "--machine=sim", "--cpus=2", "--runs-dir=" + dir,
                               "--json=" + dir + "/run-001-serial.json"});
  EXPECT_EQ(named.status, 2);
  EXPECT_TRUE(Mentions(named, "named like a file of --runs-dir")) << named.err;
  for (const char* seeds : {"--replay=5", "--schedules=10"}) {
    const Finished save = Sipi({"explore", seeds, "--save=/nonexistent/x"});
    EXPECT_EQ(save.status, 2) << seeds;
    EXPECT_TRUE(Mentions(save, "--save: /nonexistent/x")) << save.err;
    EXPECT_EQ(save.out, "") << seeds;
  }
}

TEST(Replay, OfAListThatTheScheduleDoesNotHaveIsRefused) {
  for (const char* list : {"999999:65535", "0:7", "999999:1"}) {
    const Finished f =
        Sipi({"explore", "--schedule=exhaustive", "--cpus=2", std::string("--replay=") + list});
    EXPECT_EQ(f.status, 2) << list << f.out;
    EXPECT_TRUE(Mentions(f, "--replay: there is no choice")) << f.err;
  }
  EXPECT_EQ(Sipi({"explore", "--schedule=exhaustive", "--cpus=2", "--replay=0:0"}).status, 0);
}

TEST(Messages, HoldNothingThatATerminalWouldObey) {
  const Finished f = Sipi({"explore", "--merge=\x1b[2J"});
  EXPECT_EQ(f.status, 2);
  EXPECT_TRUE(Mentions(f, "?[2J")) << f.err;
  EXPECT_FALSE(Mentions(f, "\x1b"));
}

}  // namespace
}  // namespace sipi::e2e
