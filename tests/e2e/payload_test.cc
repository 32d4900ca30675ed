// `sipi run --payload`: what a guest finds, on each irqchip, and how its end becomes sipi's.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/e2e/command.h"
#include "tests/e2e/guest_code.h"
#include "tests/support/trace_rules.h"

namespace sipi::e2e {
namespace {

using nlohmann::json;

class Payloads : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { SKIP_WITHOUT_KVM(); }

  static Finished Boot(Program program, const std::vector<std::string>& more = {},
                       Form form = Form::kMultiboot) {
    std::vector<std::string> args{"run", Payload(program, form),
                                  std::string("--irqchip=") + GetParam(), "--time-limit-s=10"};
    args.insert(args.end(), more.begin(), more.end());
    return Sipi(args);
  }

  static Finished Boot64(Program program, const std::vector<std::string>& more = {}) {
    return Boot(program, more, Form::kElf64);
  }

  // The guest says `text` and nothing else, and exits with 0, which is status 1.
  static void ExpectPass(const Finished& f, const std::string& text) {
    EXPECT_EQ(f.out, text);
    EXPECT_EQ(f.status, 1) << f.err;
  }
};

INSTANTIATE_TEST_SUITE_P(Irqchips, Payloads, testing::Values("user", "split", "kernel"));

// --- Output and exit status.

TEST_P(Payloads, StdoutIsTheGuestsAndStderrHasTheReport) {
  const Finished f = Boot(guest::hello);
  ExpectPass(f, "hello from the guest\n");
  EXPECT_NE(f.err.find("guest-exit: status 1"), std::string::npos) << f.err;
  EXPECT_NE(f.err.find("(multiboot), irqchip " + std::string(GetParam()) + ", xapic"),
            std::string::npos)
      << f.err;
}

TEST_P(Payloads, TheExitStatusIsTwiceTheCodePlusOneAtAnyWidth) {
  EXPECT_EQ(Boot(guest::exit_byte).status, 77);
  EXPECT_EQ(Boot(guest::exit_word).status, 127);
  EXPECT_EQ(Boot(guest::hello).status, 1);
}

TEST_P(Payloads, AllKindsOfImagesAreEntered) {
  const std::vector<std::string> words{"--append=one two"};
  ExpectPass(Boot(guest::hello, {}, Form::kPvh32), "hello from the guest\n");
  ExpectPass(Boot(guest::hello, {}, Form::kPvh64), "hello from the guest\n");
  const Finished elf64 = Boot64(guest::hello64, words);
  ExpectPass(elf64, "one two");
  EXPECT_NE(elf64.err.find("(64-bit ELF)"), std::string::npos) << elf64.err;
}

// --- What is handed over.

TEST_P(Payloads, AMultibootCommandLineBeginsWithTheProgramsName) {
  const std::string path = FileWith(GuestImage(guest::tell_multiboot));
  const std::string irqchip = std::string("--irqchip=") + GetParam();
  ExpectPass(Sipi({"run", "--payload=" + path, irqchip}), path + "\n0 modules\n");
  ExpectPass(Sipi({"run", "--payload=" + path, irqchip, "--append=smp 'x y'"}),
             path + " smp 'x y'\n0 modules\n");
}

TEST_P(Payloads, TheEnvironmentIsAModule) {
  const std::string path = FileWith(GuestImage(guest::tell_multiboot));
  ExpectPass(Sipi({"run", "--payload=" + path, std::string("--irqchip=") + GetParam(),
                   "--env=NR_CPUS=3", "--env=EMPTY="}),
             path + "\n1 modules\nNR_CPUS=3\nEMPTY=\n");
}

TEST_P(Payloads, PvhHasCommandLineAndModule) {
  for (const Form form : {Form::kPvh32, Form::kPvh64}) {
    ExpectPass(Boot(guest::tell_pvh, {"--append=console=ttyS0", "--env=A=B"}, form),
               "336ec578\nconsole=ttyS0\nA=B\n");
  }
}

TEST_P(Payloads, FwCfgTellsCpusAndRam) {
  ExpectPass(Boot(guest::tell_fw_cfg), "00000001 CPUs\n08000000 bytes\n");
  ExpectPass(Boot(guest::tell_fw_cfg, {"--cpus=5", "--topology=threads=1", "--memory=16M"}),
             "00000005 CPUs\n01000000 bytes\n");
}

TEST_P(Payloads, FeaturesCanBeHidden) {
  ExpectPass(Boot64(guest::tell_features), "x2apic tsc-deadline\n");
  ExpectPass(Boot64(guest::tell_features, {"--hide=x2apic"}), "no x2apic tsc-deadline\n");
  ExpectPass(Boot64(guest::tell_features, {"--hide=tsc-deadline,x2apic"}),
             "no x2apic no tsc-deadline\n");
}

// SVR enabled with vector FFH, LINT0 ExtINT, LINT1 NMI.
TEST_P(Payloads, TheBootCpusApicIsInVirtualWireMode) {
  const std::string words{"\xff\x01\0\0\0\x07\0\0\0\x04\0\0", 12};
  ExpectPass(Boot64(guest::dump_apic), words);
}

TEST_P(Payloads, TheTestDeviceReadsBackFlushesAndHasMemory) {
  ExpectPass(Boot(guest::test_device), "12345678\ncafe0001\ncafe0003\n");
}

// --- CPUs and interrupts.

TEST_P(Payloads, ApsStartByOneInitAndOneSipiWithoutDelays) {
  for (const char* cpus : {"--cpus=1", "--cpus=2", "--cpus=16"}) {
    SCOPED_TRACE(cpus);
    ExpectPass(Boot(guest::start_aps, {cpus}), "all there\n");
  }
}

TEST_P(Payloads, TheTimerInterruptsThroughThe8259AsFirmwareLeftIt) {
  ExpectPass(Boot64(guest::timer_as_firmware_left_it), "ticked\n");
}

TEST_P(Payloads, TheTimerInterruptsThroughA8259OfTheGuestsOwnProgramming) {
  ExpectPass(Boot64(guest::timer_through_pic), "ticked\n");
}

TEST_P(Payloads, TheTimerIsInput2OfTheIoApic) {
  ExpectPass(Boot64(guest::timer_through_io_apic), "ticked\n");
}

TEST_P(Payloads, ALineOfTheSlave8259Interrupts) {
  ExpectPass(Boot64(guest::line_through_slave_pic), "ticked\n");
}

TEST_P(Payloads, ALevelTriggeredLineInterrupts) {
  const Finished f = Boot64(guest::level_line_once);
  if (GetParam() != std::string("user")) {  // see the next test
    EXPECT_TRUE(f.out.ends_with("in service\n")) << f.out << f.err;
    return;
  }
  ExpectPass(f, "in service\n");
}

TEST_P(Payloads, ALevelTriggeredLineInterruptsUntilItFalls) {
  if (Boot64(guest::level_line_once).out == "not in service\n") {
    ASSERT_STRNE(GetParam(), "user");
    GTEST_SKIP() << "this machine's KVM ends an interrupt when it injects it (nothing is in ISR)";
  }
  ExpectPass(Boot64(guest::level_line), "ticked\n");
}

TEST_P(Payloads, AnNmiDuringAnNmiComesAfterIt) { ExpectPass(Boot64(guest::two_nmis), "ticked\n"); }

TEST_P(Payloads, AnNmiThatWaitedForAnotherOnesHandlerEndsTheHaltBehindIt) {
  ExpectPass(Boot64(guest::nmi_before_halt), "ticked\n");
}

TEST_P(Payloads, TheShortestTimerPeriodStillLetsTheGuestRun) {
  ExpectPass(Boot64(guest::shortest_period), "ticked\n");
}

TEST_P(Payloads, ThePortsOfSipisOwnGuestAreNotThere) {
  ExpectPass(Boot64(guest::private_ports), "still here\n");
}

// SDM vol 3A, 6.7.1: an NMI's handler blocks further NMIs; interrupts are RFLAGS.IF's affair.
TEST_P(Payloads, AnInterruptComesIntoAnNmisHandlerWhileAnotherNmiWaits) {
  ExpectPass(Boot64(guest::interrupt_in_nmi), "ticked\n");
}

// --- Results.

TEST_P(Payloads, JsonHasThePayloadAndItsCpus) {
  const RunResult run = SipiRun({Payload(guest::start_aps), "--cpus=4", "--append=x",
                                 std::string("--irqchip=") + GetParam()});
  EXPECT_EQ(run.finished.status, 1) << run.finished.err;
  EXPECT_EQ(run.finished.out, "all there\n");
  EXPECT_EQ(run.json["schema"], "sipi.run/1");
  EXPECT_EQ(run.json["outcome"], "guest-exit");
  EXPECT_EQ(run.json["payload"]["kind"], "multiboot");
  EXPECT_EQ(run.json["payload"]["exit_status"], 1);
  EXPECT_EQ(run.json["complete"], true);
  EXPECT_EQ(run.json["cpus_offered"], 4);
  EXPECT_EQ(run.json["cpus_online"], 4);
  EXPECT_EQ(run.json["lost_events"], 0);
  ASSERT_EQ(run.json["cpus"].size(), 4u);
  std::map<std::string, int> count;
  for (const json& event : run.json["events"]) ++count[event["name"]];
  EXPECT_EQ(count["first-run"], 4);
  if (run.json["irqchip"] == "user") {
    EXPECT_EQ(count["init-delivered"], 3);
    EXPECT_EQ(count["sipi-delivered"], 3);
  }
}

TEST_P(Payloads, TheTraceKeepsTheFormatsRules) {
  const std::string trace = TempPath("trace.json");
  const Finished f =
      Boot(guest::start_aps, {"--cpus=3", "--topology=threads=1", "--trace=" + trace});
  ExpectPass(f, "all there\n");
  const TraceContents contents = CheckTrace(ReadWholeFile(trace));
  EXPECT_EQ(contents.violations, std::vector<std::string>());
  EXPECT_EQ(contents.track_names.size(), 4u);  // the VM's and three CPUs'
}

}  // namespace
}  // namespace sipi::e2e
