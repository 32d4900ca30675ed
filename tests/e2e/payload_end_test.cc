// How a payload's run ends otherwise than by its exit port: resets, restarts, faults, halts,
// limits, signals.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "tests/e2e/command.h"
#include "tests/e2e/guest_code.h"

namespace sipi::e2e {
namespace {

class PayloadEnds : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { SKIP_WITHOUT_KVM(); }

  static RunResult Boot(Program program, const std::vector<std::string>& more = {},
                        Form form = Form::kMultiboot) {
    std::vector<std::string> args{Payload(program, form), std::string("--irqchip=") + GetParam()};
    const auto limits = [](const std::string& flag) { return flag.starts_with("--time-limit"); };
    if (std::none_of(more.begin(), more.end(), limits)) args.push_back("--time-limit-s=10");
    args.insert(args.end(), more.begin(), more.end());
    return SipiRun(args);
  }
  static void ExpectEnd(const RunResult& run, const char* outcome, int status,
                        const std::string& says) {
    EXPECT_EQ(run.json["outcome"], outcome) << run.finished.err;
    EXPECT_EQ(run.finished.status, status);
    const std::string diagnosis = run.json["diagnosis"];
    EXPECT_NE(diagnosis.find(says), std::string::npos) << diagnosis;
    EXPECT_NE(run.finished.err.find(diagnosis), std::string::npos) << run.finished.err;
  }
  static void ExpectPass(const RunResult& run, const std::string& text) {
    EXPECT_EQ(run.finished.out, text);
    EXPECT_EQ(run.finished.status, 1) << run.finished.err;
  }
};

INSTANTIATE_TEST_SUITE_P(Irqchips, PayloadEnds, testing::Values("user", "split", "kernel"));

// --- Resets and restarts.

TEST_P(PayloadEnds, AResetThroughAnyPortIsAnOutcome) {
  ExpectEnd(Boot(guest::reset_keyboard), "guest-reset", 11,
            "CPU 0 reset the machine through port 0x64");
  ExpectEnd(Boot(guest::reset_port92), "guest-reset", 11, "port 0x92");
  ExpectEnd(Boot(guest::reset_cf9), "guest-reset", 11, "port 0xcf9");
}

TEST_P(PayloadEnds, AResetWithShutdownByte0AResumesAt4067) {
  for (const Program program : {guest::resume_keyboard, guest::resume_port92, guest::resume_cf9}) {
    ExpectPass(Boot(program), "R");
  }
}

TEST_P(PayloadEnds, TheResetVectorEntersThePayloadAnewAndKeepsLowRam) {
  ExpectPass(Boot(guest::jump_to_reset_vector), "first pass\ncame back\n");
}

TEST_P(PayloadEnds, AnInitToTheBootCpuGoesToTheFirmware) {
  ExpectPass(Boot(guest::init_to_own_id), "first pass\ncame back\n");
}

// Case A6: the SDM has no INIT with the shorthand "self"; KVM's APIC takes it.
TEST_P(PayloadEnds, AnInitToSelfByShorthandIsNothingInTheModelAndAnInitInKvm) {
  const bool user = GetParam() == std::string("user");
  const RunResult as_told = Boot(guest::init_to_self_shorthand);
  EXPECT_EQ(as_told.finished.out, user ? "first pass\nwent on\n" : "first pass\ncame back\n");
  EXPECT_EQ(as_told.finished.status, user ? 3 : 1) << as_told.finished.err;
  if (user) {
    ExpectPass(Boot(guest::init_to_self_shorthand, {"--icr=kvm"}), "first pass\ncame back\n");
  }
}

// --- Faults, halts, limits.

TEST_P(PayloadEnds, ATripleFaultIsDiagnosed) {
  const RunResult run = Boot(guest::triple_fault);
  ExpectEnd(run, "guest-fault", 4, "CPU 0");
  EXPECT_EQ(run.finished.out, "");
  EXPECT_EQ(run.json["payload"]["exit_status"], 0);
}

TEST_P(PayloadEnds, AnEndlessLoopMeetsTheTimeLimit) {
  const RunResult run = Boot(guest::spin, {"--time-limit-s=1"});
  ExpectEnd(run, "time-limit", 5, "running, IF=0");
  EXPECT_EQ(run.finished.out, "spinning\n");
  EXPECT_EQ(run.json["complete"], false);
}

TEST_P(PayloadEnds, AHaltForGoodIsNoticed) {
  const RunResult run = Boot(guest::halt, {"--cpus=2", "--time-limit-s=30"});
  ExpectEnd(run, "all-halted", 6, "CPU 0 (APIC ID 0): halted, IF=0");
  EXPECT_LT(run.finished.seconds, 25.0);
}

TEST_P(PayloadEnds, AHaltUnderATimerThatTicksIsNone) {
  ExpectEnd(Boot(guest::halt_while_timer_runs, {"--time-limit-s=2"}, Form::kElf64), "time-limit", 5,
            "CPU 0");
}

TEST_P(PayloadEnds, ATimerThatHasTickedItsLastDoesNotKeepTheMachine) {
  if (GetParam() == std::string("kernel")) {
    GTEST_SKIP() << "KVM does not say whether its 8254 has counted to its end";
  }
  const RunResult run = Boot(guest::halt_after_one_shot, {"--time-limit-s=30"}, Form::kElf64);
  ExpectEnd(run, "all-halted", 6, "CPU 0 (APIC ID 0): halted, IF=1");
  EXPECT_EQ(run.finished.out, "ticked\n");
}

// --- Signals.

// Sends the signal once the guest has written its first line to the file `serial`.
void SignalOnceItRuns(int pid, int signal, const std::string& serial) {
  for (int i = 0; i < 10'000 && !ReadWholeFile(serial).ends_with('\n'); ++i) poll(nullptr, 0, 1);
  kill(pid, signal);
}

TEST_P(PayloadEnds, ASignalEndsTheRunAndKeepsTheResults) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string serial = TempPath("serial");
    std::thread sender;
    const RunResult run = SipiRun(
        {Payload(guest::spin), std::string("--irqchip=") + GetParam(), "--serial=" + serial},
        {.while_running = [&](int pid) {
          sender = std::thread(SignalOnceItRuns, pid, signal, serial);
        }});
    sender.join();
    EXPECT_EQ(run.finished.status, 128 + signal) << run.finished.err;
    EXPECT_EQ(run.json["outcome"], "interrupted");
    EXPECT_EQ(run.json["signal"], signal);
    EXPECT_EQ(ReadWholeFile(serial), "spinning\n");
    EXPECT_EQ(run.finished.out, "");
  }
}

}  // namespace
}  // namespace sipi::e2e
