// What goes wrong is said, bounded, and leaves nothing behind: the cases V1 to V9, A13 and G1 from
// outside.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <thread>

#include "tests/e2e/command.h"

namespace sipi::e2e {
namespace {

using nlohmann::json;

bool Mentions(const Finished& f, const std::string& text) {
  return f.err.find(text) != std::string::npos || f.out.find(text) != std::string::npos;
}

int LineCount(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

// --- A13 and the "killing an AP".

class DeadAp : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(DeadAp, IsNamedWhileAllOthersComeUp) {
  SKIP_WITHOUT_KVM();
  const auto [strategy, irqchip] = GetParam();
  const RunResult run = SipiRun({"--cpus=8", std::string("--strategy=") + strategy,
                                 std::string("--irqchip=") + irqchip, "--fault=no-start@5",
                                 "--handshake-timeout-ms=300"});
  EXPECT_EQ(run.finished.status, 3) << run.finished.err;
  EXPECT_EQ(run.json["cpus_online"], 7);
  EXPECT_TRUE(Mentions(run.finished, "CPU 5")) << run.finished.out << run.finished.err;
  for (const json& cpu : run.json["cpus"])
    EXPECT_EQ(cpu["online_ns"].is_null(), cpu["cpu"] == 5) << cpu;
}

INSTANTIATE_TEST_SUITE_P(Matrix, DeadAp,
                         testing::Combine(testing::Values("serial", "kick", "kick+wait", "full",
                                                          "broadcast"),
                                          testing::Values("user", "split", "kernel")));

TEST(LostSipi, EitherOneIsMadeUpForByTheOther) {
  SKIP_WITHOUT_KVM();
  for (const char* strategy : {"serial", "full"}) {
    for (const char* fault : {"lost-sipi1@9", "lost-sipi2@9"}) {
      const RunResult run = SipiRun(
          {"--cpus=64", std::string("--strategy=") + strategy, std::string("--fault=") + fault});
      EXPECT_EQ(run.finished.status, 0) << fault << run.finished.err;
      EXPECT_EQ(run.json["cpus_online"], 64);
    }
    const RunResult both = SipiRun({"--cpus=64", std::string("--strategy=") + strategy,
                                    "--fault=lost-sipis@9", "--handshake-timeout-ms=300"});
    EXPECT_EQ(both.finished.status, 3);
    EXPECT_EQ(both.json["cpus_online"], 63);
    EXPECT_TRUE(Mentions(both.finished, "CPU 9")) << both.finished.out;
  }
}

// G1: an AP whose CPUID lies starts when its ID is read from the APIC, and is named when it is read
// from CPUID.
TEST(LyingFirmware, OnlyHurtsWhereTheIdComesFromCpuid) {
  SKIP_WITHOUT_KVM();
  const RunResult apic = SipiRun({"--cpus=8", "--strategy=full", "--firmware-lies=3"});
  EXPECT_EQ(apic.finished.status, 0) << apic.finished.err;
  const RunResult cpuid = SipiRun({"--cpus=8", "--strategy=full", "--firmware-lies=3",
                                   "--ap-id=cpuid-b", "--handshake-timeout-ms=300"});
  EXPECT_EQ(cpuid.finished.status, 3);
  EXPECT_EQ(cpuid.json["cpus_online"], 7);
  EXPECT_TRUE(Mentions(cpuid.finished, "CPU 3")) << cpuid.finished.out;
}

// A step that fails is undone; the others go on.
TEST(FailingStep, IsRolledBackAndNamed) {
  SKIP_WITHOUT_KVM();
  for (const char* state : {"58", "147", "234"}) {
    const RunResult run =
        SipiRun({"--cpus=4", "--strategy=serial", std::string("--fault=fail-step@2:") + state});
    EXPECT_EQ(run.finished.status, 3) << state << run.finished.err;
    EXPECT_EQ(run.json["cpus_online"], 3) << state;
    bool said = false;
    for (const json& event : run.json["events"]) said |= event["name"] == "step-failed";
    EXPECT_TRUE(said) << state;
  }
}

// A CPU that fails while all others come up at the same time is never counted as online.
TEST(FailingStep, NeverCountsAsOnlineInConcurrentStrategies) {
  SKIP_WITHOUT_KVM();
  for (const char* driver : {"--driver=guest", "--driver=host"}) {
    for (int round = 0; round < 10; ++round) {
      const RunResult run = SipiRun({"--cpus=8", "--strategy=broadcast", "--irqchip=kernel", driver,
                                     "--handshake-timeout-ms=300", "--fault=fail-step@3:234"});
      EXPECT_EQ(run.finished.status, 3) << driver << run.finished.err;
      EXPECT_EQ(run.json["cpus_online"], 7) << driver;
      EXPECT_EQ(run.json["cpus"][3]["online"], false) << driver;
      EXPECT_EQ(run.json["cpus"][3]["sync_state"], "dead") << driver;
      EXPECT_EQ(run.json["cpus"][3]["cpuhp_state"], "offline") << driver;
    }
  }
}

TEST(FailingStep, ThatIsNeverEnteredIsSaid) {
  SKIP_WITHOUT_KVM();
  const Finished f = Sipi({"run", "--cpus=4", "--strategy=full", "--fault=fail-step@2:83"});
  EXPECT_EQ(f.status, 0);
  EXPECT_TRUE(Mentions(f, "not injected")) << f.out;
}

// G4's half that needs no second try: an AP that comes after it was given up parks, and disturbs
// nobody.
TEST(LateAp, SeesThatItWasCancelledAndParks) {
  SKIP_WITHOUT_KVM();
  const RunResult run = SipiRun({"--cpus=4", "--strategy=serial", "--fault=late@2:600",
                                 "--handshake-timeout-ms=200", "--scenario=ipi-all"});
  EXPECT_EQ(run.finished.status, 3) << run.finished.err;
  EXPECT_EQ(run.json["cpus_online"], 3);
}

// --- V1: what stands in the way of KVM.

struct Device {
  const char* path;
  int status;
  const char* says;
};

TEST(KvmDevice, EachProblemHasItsOwnMessageAndStatus) {
  const std::string regular = TempPath("not-kvm");
  fclose(fopen(regular.c_str(), "w"));
  for (const Device& device :
       {Device{"/dev/no-such-kvm", 7, "modprobe"}, Device{"/dev/null", 9, "/dev/null"},
        Device{regular.c_str(), 9, "not-kvm"}}) {
    for (const char* command : {"doctor", "run"}) {
      const Finished f = Sipi({command, std::string("--kvm-device=") + device.path});
      EXPECT_EQ(f.status, device.status) << command << " " << device.path << ": " << f.err;
      EXPECT_TRUE(Mentions(f, device.says)) << f.out << f.err;
    }
  }
}

TEST(KvmDevice, IsNotNeededForHelp) {
  for (const char* command : {"run", "compare", "doctor"}) {
    const Finished f = Sipi({command, "--help"});
    EXPECT_EQ(f.status, 0);
    EXPECT_NE(f.out.find("sipi " + std::string(command)), std::string::npos) << f.out;
  }
}

// --- V2 and usage errors: one line, exit 2, nothing started.

class BadUsage : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(BadUsage, IsOneLineWithTheRemedy) {
  const auto [flag, says] = GetParam();
  const Finished f = Sipi({"run", flag});
  EXPECT_EQ(f.status, 2) << flag << ": " << f.err;
  EXPECT_EQ(LineCount(f.err), 1) << f.err;
  EXPECT_NE(f.err.find(says), std::string::npos) << f.err;
}

INSTANTIATE_TEST_SUITE_P(
    Flags, BadUsage,
    testing::Values(std::pair{"--cpus=0", "--cpus"}, std::pair{"--cpus=-1", "--cpus"},
                    std::pair{"--cpus=abc", "--cpus"}, std::pair{"--cpus=99999999999", "--cpus"},
                    std::pair{"--nonsense", "--nonsense"},
                    std::pair{"--strategy=parallel", "parallel"},
                    std::pair{"--profile=cray", "cray"},
                    std::pair{"--profile=/nonexistent.json", "/nonexistent.json"},
                    std::pair{"--topology=sockets=x", "sockets"},
                    std::pair{"--irqchip=none", "none"}, std::pair{"--fault=dead@1", "dead"},
                    std::pair{"--order=file:/nonexistent", "/nonexistent"}));

TEST(Limits, BeyondTheHostsMaximumAreNamedWithTheirValue) {
  SKIP_WITHOUT_KVM();
  const Finished count = Sipi({"run", "--cpus=100000"});
  EXPECT_EQ(count.status, 2);
  EXPECT_TRUE(Mentions(count, "100000")) << count.err;
  const Finished id = Sipi({"run", "--cpus=2", "--apic-ids=0,1000000"});
  EXPECT_EQ(id.status, 2);
  EXPECT_TRUE(Mentions(id, "1000000")) << id.err;
}

TEST(MalformedProfile, NamesFileAndKey) {
  const std::string path = TempPath("bad.json");
  FILE* file = fopen(path.c_str(), "w");
  fputs("{\"name\": \"x\", \"startup\": {\"ns\": -5}}", file);
  fclose(file);
  const Finished f = Sipi({"run", "--profile=" + path});
  EXPECT_EQ(f.status, 2);
  EXPECT_TRUE(Mentions(f, path) && Mentions(f, "startup")) << f.err;
}

// --- V3.

TEST(OpenFiles, TheSoftLimitIsRaisedAndTheHardLimitNamed) {
  SKIP_WITHOUT_KVM();
  const auto limit = [](rlim_t soft, rlim_t hard) {
    return [soft, hard] {
      const rlimit l{soft, hard};
      setrlimit(RLIMIT_NOFILE, &l);
    };
  };
  EXPECT_EQ(Sipi({"run", "--cpus=255", "--strategy=full"}, {.in_child = limit(64, 4096)}).status,
            0);
  const Finished f = Sipi({"run", "--cpus=255", "--strategy=full"}, {.in_child = limit(64, 200)});
  EXPECT_EQ(f.status, 1) << f.err;
  EXPECT_EQ(LineCount(f.err), 1) << f.err;
  EXPECT_TRUE(Mentions(f, "200")) << f.err;
}

// --- V4, V5, V9.

struct Broken {
  const char* fault;
  int status;
  const char* says;
};
class BrokenGuest : public testing::TestWithParam<std::tuple<Broken, const char*>> {};

TEST_P(BrokenGuest, IsStoppedAndSaid) {
  SKIP_WITHOUT_KVM();
  const auto [broken, irqchip] = GetParam();
  const RunResult run =
      SipiRun({"--cpus=64", "--strategy=full", std::string("--irqchip=") + irqchip,
               std::string("--fault=") + broken.fault, "--time-limit-s=3"});
  EXPECT_EQ(run.finished.status, broken.status) << run.finished.err << run.finished.out;
  EXPECT_TRUE(Mentions(run.finished, broken.says)) << run.finished.err << run.finished.out;
}

INSTANTIATE_TEST_SUITE_P(
    Faults, BrokenGuest,
    testing::Combine(testing::Values(Broken{"triple-fault@0", 4, "triple fault on CPU 0"},
                                     Broken{"triple-fault@37", 4, "triple fault on CPU 37"},
                                     Broken{"exception@37", 4, "divide"},
                                     Broken{"bad-insn@37", 4, "opcode"},
                                     Broken{"halt-all@1", 6, "halted"},
                                     Broken{"hang@0", 5, "time limit"},
                                     Broken{"hang@37", 5, "CPU 37"}),
                     testing::Values("user", "kernel")));

TEST(WildGuest, IsKeptInControl) {
  SKIP_WITHOUT_KVM();
  for (const char* irqchip : {"--irqchip=user", "--irqchip=kernel"}) {
    for (const char* fault : {"--fault=wild-mmio@3", "--fault=wild-icr@3"}) {
      EXPECT_EQ(Sipi({"run", "--cpus=8", "--strategy=full", irqchip, fault}).status, 0)
          << irqchip << fault;
    }
  }
}

// --- V6.

TEST(Serial, AFileGetsEveryByteInOrder) {
  SKIP_WITHOUT_KVM();
  const std::string path = TempPath("serial");
  ASSERT_EQ(
      Sipi({"run", "--cpus=1", "--scenario=print", "--scenario-value=64000", "--serial=" + path})
          .status,
      0);
  const std::string text = ReadWholeFile(path);
  ASSERT_EQ(text.size(), 64000u);
  for (size_t line = 0; line < 1000; ++line) {
    char expected[25];
    snprintf(expected, sizeof expected, "cpu 0000 line %08zu ", line);
    ASSERT_EQ(text.substr(line * 64, 23), expected);
  }
}

TEST(Serial, AFileGetsEveryByteOfAllCpusThatPrintAtOnce) {
  SKIP_WITHOUT_KVM();
  const std::string path = TempPath("serial");
  ASSERT_EQ(Sipi({"run", "--cpus=64", "--strategy=full", "--scenario=print",
                  "--scenario-value=65536", "--serial=" + path})
                .status,
            0);
  EXPECT_EQ(ReadWholeFile(path).size(), 65536u);
}

TEST(Serial, AFullDeviceStopsNothing) {
  SKIP_WITHOUT_KVM();
  const Finished full =
      Sipi({"run", "--cpus=4", "--scenario=print", "--scenario-value=20000", "--serial=/dev/full"});
  EXPECT_EQ(full.status, 1) << full.err;
  EXPECT_TRUE(Mentions(full, "4 of 4 CPUs online")) << full.out;
  EXPECT_TRUE(Mentions(full, "dropped (No space left on device)")) << full.err << full.out;
}

// --- V7.

class Signals : public testing::TestWithParam<int> {};

TEST_P(Signals, EndTheRunWithinASecondAndKeepTheTimeline) {
  SKIP_WITHOUT_KVM();
  const int signal = GetParam();
  std::signal(SIGHUP, SIG_DFL);  // under nohup it is ignored, which the command would inherit
  std::thread killer;
  const RunResult run =
      SipiRun({"--cpus=16", "--strategy=full", "--fault=hang@3", "--time-limit-s=30"},
              {.while_running = [&](int pid) {
                killer = std::thread([=] {
                  usleep(500000);
                  kill(pid, signal);
                  kill(pid, signal);
                });
              }});
  killer.join();
  EXPECT_EQ(run.finished.status, 128 + signal) << run.finished.err;
  EXPECT_LT(run.finished.seconds, 1.5);
  EXPECT_EQ(run.json["complete"], false);
}

INSTANTIATE_TEST_SUITE_P(Each, Signals, testing::Values(SIGHUP, SIGINT, SIGTERM));

// --- Files are whole or not there.

TEST(OutputFile, OfTwoResultsIsRefused) {
  SKIP_WITHOUT_KVM();
  for (const char* other : {"--trace=-", "--serial=-"}) {
    const Finished f = Sipi({"run", "--cpus=2", "--json=-", other});
    EXPECT_EQ(f.status, 2) << other;
    EXPECT_EQ(LineCount(f.err), 1) << f.err;
  }
}

TEST(OutputFile, ThatIsAFifoWithoutAReaderIsRefusedAtOnce) {
  SKIP_WITHOUT_KVM();
  const std::string fifo = TempPath("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const char* flag : {"--json=", "--trace=", "--serial="}) {
    const Finished f = Sipi({"run", "--cpus=2", flag + fifo});
    EXPECT_EQ(f.status, 2) << flag << f.err;
    EXPECT_TRUE(Mentions(f, fifo)) << f.err;
  }
}

TEST(OrderFile, WithoutAnEndIsNotReadWithoutAnEnd) {
  const Finished f = Sipi({"run", "--cpus=4", "--order=file:/dev/zero"});
  EXPECT_EQ(f.status, 2);
  EXPECT_EQ(LineCount(f.err), 1) << f.err;
}

// Would wait for a writer for ever if it were opened as a file is.
TEST(InputFile, ThatIsAFifoIsNamedAndNotWaitedFor) {
  const std::string fifo = TempPath("fifo.json");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const char* flag : {"--state", "--merge", "--replay"}) {
    const Finished f = Sipi({"explore", "--schedules=1", flag + ("=" + fifo)});
    EXPECT_EQ(f.status, 2) << flag;
    EXPECT_EQ(LineCount(f.err), 1) << f.err;
    EXPECT_TRUE(Mentions(f, flag) && Mentions(f, fifo)) << f.err;
  }
}

TEST(Veto, IsMarkedInTheComparison) {
  SKIP_WITHOUT_KVM();
  const Finished f =
      Sipi({"compare", "--cpus=4", "--runs=1", "--strategies=serial,full", "--veto=vendor"});
  EXPECT_EQ(f.status, 0) << f.err;
  EXPECT_TRUE(Mentions(f, "vetoed")) << f.out;
}

TEST(OutputFile, ThatCannotBeWrittenIsNamedAndLeavesNothing) {
  SKIP_WITHOUT_KVM();
  const Finished f = Sipi({"run", "--cpus=2", "--json=/nonexistent-directory/x.json"});
  EXPECT_NE(f.status, 0);
  EXPECT_TRUE(Mentions(f, "/nonexistent-directory/x.json")) << f.err;
}

}  // namespace
}  // namespace sipi::e2e
