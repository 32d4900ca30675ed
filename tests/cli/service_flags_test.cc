// Flags of the kernel beyond bring-up and of its scenarios.
#include "vmm/cli/service_flags.h"

#include <gtest/gtest.h>

#include "vmm/cli/command_line.h"

namespace sipi {
namespace {

CpuLimits Host(const std::string& /*device*/) { return {1024, 4096, 1024}; }

CommandLine Parse(const std::vector<std::string>& args) {
  absl::StatusOr<CommandLine> line = ParseCommandLine(args, Host);
  EXPECT_TRUE(line.ok()) << line.status();
  return line.ok() ? *std::move(line) : CommandLine();
}

std::string ErrorOf(const std::vector<std::string>& args) {
  const absl::StatusOr<CommandLine> line = ParseCommandLine(args, Host);
  EXPECT_FALSE(line.ok());
  return std::string(line.status().message());
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(ServiceFlags, APlainRunHasNoServices) {
  EXPECT_EQ(Parse({"run"}).checked.config.kernel.services, 0);
  EXPECT_EQ(Parse({"compare"}).checked.config.kernel.services, 0);
  EXPECT_EQ(Parse({"params", "--out=x"}).checked.config.kernel.services, 0);
}

TEST(ServiceFlags, AKernelFlagOrItsScenarioBringsThem) {
  const RunConfig boot = Parse({"run", "--boot-gp=normal"}).checked.config;
  EXPECT_EQ(boot.kernel.services, 1);
  EXPECT_EQ(boot.kernel.boot_grace_periods, 1);
  EXPECT_EQ(boot.kernel.boot_expedited, 0);
  EXPECT_EQ(boot.scenario, abi::Scenario::kSmpboot);
  EXPECT_EQ(boot.time_limit_ms, 60'000);
  const RunConfig hotplug = Parse({"run", "--scenario=hotplug"}).checked.config;
  EXPECT_EQ(hotplug.kernel.services, 1);
  EXPECT_GT(hotplug.time_limit_ms, 60'000);
  EXPECT_EQ(Parse({"run", "--scenario=hotplug", "--time-limit-s=5"}).checked.config.time_limit_ms,
            5'000);
}

// A guest with a scenario that needs the services, and without them, would fault.
TEST(ServiceFlags, NoCommandLeavesAScenarioWithoutWhatItNeeds) {
  for (const std::vector<std::string>& command : {std::vector<std::string>{"run"},
                                                  {"compare"},
                                                  {"params", "--out=x"},
                                                  {"smt", "--topology=threads=2"},
                                                  {"rcu", "scale"},
                                                  {"rcu", "ref"},
                                                  {"rcu", "callrcu"},
                                                  {"rcu", "torture"}}) {
    for (const std::string scenario : {"smpboot", "print", "ipi-all", "hotplug"}) {
      std::vector<std::string> args = command;
      args.push_back("--scenario=" + scenario);
      const absl::StatusOr<CommandLine> line = ParseCommandLine(args, Host);
      const std::string what = command[0] + " " + scenario;
      if (!line.ok()) {
        EXPECT_EQ(line.status().message().substr(0, 12), "--scenario: ") << what;
        continue;
      }
      const RunConfig& config = line->checked.config;
      EXPECT_EQ(config.kernel.services, config.scenario >= abi::Scenario::kHotplug ? 1 : 0) << what;
    }
  }
  EXPECT_EQ(Parse({"params", "--scenario=hotplug", "--out=x"}).checked.config.kernel.services, 1);
}

TEST(ServiceFlags, EveryKnobArrives) {
  const RunConfig config = Parse({"run",
                                  "--cpus=8",
                                  "--scenario=hotplug",
                                  "--rounds=7",
                                  "--hotplug-cpu=3",
                                  "--preempt=lazy",
                                  "--hz=100",
                                  "--rcu-flavour=non-preemptible",
                                  "--rcu-fanout=3",
                                  "--rcu-fanout-leaf=2",
                                  "--rcu-expedited=on",
                                  "--rcu-normal=on",
                                  "--rcu-wake-from-gp=on",
                                  "--rcu-exp=serial",
                                  "--boot-gp=expedited",
                                  "--hotplug-steps=pseries",
                                  "--jiffies-till-first-fqs=0",
                                  "--jiffies-till-next-fqs=5",
                                  "--rcu-stall-ms=500",
                                  "--seed=42"})
                               .checked.config;
  EXPECT_EQ(config.scenario, abi::Scenario::kHotplug);
  EXPECT_EQ(config.scenario_knobs.rounds, 7u);
  EXPECT_EQ(config.scenario_knobs.hotplug_cpu, 3u);
  EXPECT_EQ(config.scenario_knobs.seed, 42u);
  EXPECT_EQ(config.kernel.preemption, abi::Preemption::kLazy);
  EXPECT_EQ(config.kernel.hz, 100u);
  EXPECT_EQ(config.kernel.rcu_flavour, abi::RcuFlavour::kNonPreemptible);
  EXPECT_EQ(config.kernel.rcu_fanout, 3);
  EXPECT_EQ(config.kernel.rcu_fanout_leaf, 2);
  EXPECT_EQ(config.kernel.rcu_expedited, 1);
  EXPECT_EQ(config.kernel.rcu_normal, 1);
  EXPECT_EQ(config.kernel.rcu_normal_wake_from_gp, 1);
  EXPECT_EQ(config.kernel.rcu_exp_parallel, 0);
  EXPECT_EQ(config.kernel.boot_grace_periods, 1);
  EXPECT_EQ(config.kernel.boot_expedited, 1);
  EXPECT_EQ(config.kernel.hotplug_steps, abi::HotplugSteps::kPseries);
  EXPECT_EQ(config.kernel.jiffies_till_first_fqs, 0u);
  EXPECT_EQ(config.kernel.jiffies_till_next_fqs, 5u);
  EXPECT_EQ(config.kernel.rcu_stall_ms, 500u);
}

TEST(ServiceFlags, BadValuesNameFlagAndRemedy) {
  EXPECT_TRUE(Contains(ErrorOf({"run", "--preempt=ful"}), "--preempt: "));
  EXPECT_TRUE(Contains(ErrorOf({"run", "--preempt=ful"}), "did you mean 'full'?"));
  EXPECT_TRUE(Contains(ErrorOf({"run", "--hz=0"}), "--hz: '0' is too small; the least is 24"));
  EXPECT_TRUE(Contains(ErrorOf({"run", "--rcu-fanout=1"}), "--rcu-fanout: "));
  EXPECT_TRUE(Contains(ErrorOf({"run", "--rcu-fanout-leaf=65"}), "--rcu-fanout-leaf: "));
  EXPECT_TRUE(Contains(ErrorOf({"run", "--rcu-flavour=x"}), "preemptible"));
  EXPECT_TRUE(Contains(ErrorOf({"run", "--rcu-expedited=1"}), "--rcu-expedited: "));
  EXPECT_TRUE(Contains(ErrorOf({"run", "--boot-gp=fast"}), "--boot-gp: "));
  EXPECT_TRUE(Contains(ErrorOf({"run", "--hotplug-steps=arm"}), "--hotplug-steps: "));
  EXPECT_TRUE(Contains(ErrorOf({"run", "--rounds=2"}), "add --scenario=hotplug"));
  EXPECT_TRUE(Contains(ErrorOf({"run", "--hotplug-cpu=1"}), "add --scenario=hotplug"));
  const auto hotplug = [](const char* flag) {
    return ErrorOf({"run", "--scenario=hotplug", "--cpus=4", flag});
  };
  EXPECT_TRUE(Contains(hotplug("--hotplug-cpu=0"), "CPU 0 is the boot CPU"));
  EXPECT_TRUE(Contains(hotplug("--hotplug-cpu=4"), "--hotplug-cpu: '4' is too large"));
  EXPECT_TRUE(Contains(hotplug("--cpus=1"), "--cpus=2"));
  EXPECT_TRUE(Contains(hotplug("--driver=host"), "--driver: "));
  EXPECT_TRUE(Contains(ErrorOf({"run", "--payload=/bin/true", "--hz=100"}), "--payload: "));
}

TEST(ServiceFlags, SmtTakesApproachesAndThreads) {
  const CommandLine all = Parse({"smt", "--cpus=32", "--topology=threads=8"});
  EXPECT_EQ(all.verb, Verb::kSmt);
  EXPECT_EQ(all.checked.config.scenario, abi::Scenario::kSmt);
  EXPECT_EQ(all.checked.config.kernel.services, 1);
  EXPECT_EQ(all.checked.config.scenario_knobs.approaches, 0x7fu);
  EXPECT_EQ(all.checked.config.scenario_knobs.smt_threads, 1u);
  EXPECT_EQ(all.checked.config.scenario_knobs.rounds, 1u);
  const CommandLine two = Parse({"smt", "--cpus=8", "--topology=threads=4", "--to=2",
                                 "--approach=none,wake-from-gp", "--rounds=3", "--html=x.html"});
  EXPECT_EQ(two.checked.config.scenario_knobs.approaches, 0x41u);
  EXPECT_EQ(two.checked.config.scenario_knobs.smt_threads, 2u);
  EXPECT_EQ(two.checked.config.scenario_knobs.rounds, 3u);
  EXPECT_EQ(two.flags.html, "x.html");
  EXPECT_TRUE(Contains(ErrorOf({"smt", "--cpus=8"}), "give e.g. --topology=threads=2"));
  const auto smt = [](const char* flag) {
    return ErrorOf({"smt", "--cpus=8", "--topology=threads=4", flag});
  };
  EXPECT_TRUE(Contains(smt("--approach=expidite"), "did you mean 'expedite'?"));
  EXPECT_TRUE(Contains(smt("--to=4"), "--to: '4' is too large; the limit is 3"));
  EXPECT_TRUE(Contains(smt("--to=on"), "--to: 'on' is where each round"));
  EXPECT_TRUE(Contains(smt("--scenario=print"), "--scenario: "));
  EXPECT_TRUE(Contains(smt("--writers=2"), "unknown flag '--writers'"));
}

// A busy CPU must stay online: primary threads, but for the boot CPU.
TEST(ServiceFlags, SmtKeepsCpusBusy) {
  const auto smt = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"smt", "--cpus=16", "--topology=threads=4"});
    return more;
  };
  EXPECT_EQ(Parse(smt({})).checked.config.scenario_knobs.kernel_busy, 0u);
  EXPECT_EQ(Parse(smt({"--kernel-busy=3"})).checked.config.scenario_knobs.kernel_busy, 3u);
  EXPECT_TRUE(Contains(ErrorOf(smt({"--kernel-busy=4"})), "--kernel-busy: '4' is too large"));
  // Of a profile, with its machine's kernel; a flag goes first.
  const CommandLine ppc = Parse({"smt", "--machine=sim", "--profile=ppc64-400"});
  EXPECT_EQ(ppc.checked.config.scenario_knobs.kernel_busy, 1u);
  EXPECT_EQ(ppc.checked.config.kernel.rcu_flavour, abi::RcuFlavour::kNonPreemptible);
  EXPECT_EQ(ppc.checked.config.kernel.preemption, abi::Preemption::kVoluntary);
  const CommandLine idle = Parse({"smt", "--machine=sim", "--profile=ppc64-400", "--kernel-busy=0",
                                  "--rcu-flavour=preemptible", "--preempt=full"});
  EXPECT_EQ(idle.checked.config.scenario_knobs.kernel_busy, 0u);
  EXPECT_EQ(idle.checked.config.kernel.rcu_flavour, abi::RcuFlavour::kPreemptible);
  EXPECT_EQ(idle.checked.config.kernel.preemption, abi::Preemption::kFull);
}

TEST(ServiceFlags, RcuHasFourCommands) {
  EXPECT_EQ(Parse({"rcu", "scale"}).verb, Verb::kRcuScale);
  EXPECT_EQ(Parse({"rcu", "ref"}).verb, Verb::kRcuRef);
  EXPECT_EQ(Parse({"rcu", "callrcu"}).verb, Verb::kRcuCallRcu);
  EXPECT_EQ(Parse({"rcu", "torture"}).verb, Verb::kRcuTorture);
  EXPECT_TRUE(Contains(ErrorOf({"rcu"}), "give scale, ref, callrcu or torture"));
  EXPECT_TRUE(Contains(ErrorOf({"rcu", "scal"}), "did you mean 'scale'?"));
  EXPECT_TRUE(Contains(ErrorOf({"rcu", "scale", "--writer=2"}), "did you mean '--writers'?"));
  EXPECT_TRUE(Contains(ErrorOf({"rcu", "scale", "torture"}), "torture"));
  EXPECT_TRUE(Contains(Parse({"rcu", "torture", "--help"}).help, "--seconds"));
}

TEST(ServiceFlags, RcuScale) {
  const CommandLine line = Parse({"rcu", "scale", "--cpus=16", "--expedited", "--writers=4",
                                  "--readers=2", "--measurements=50", "--durations"});
  EXPECT_EQ(line.checked.config.scenario, abi::Scenario::kRcuScale);
  EXPECT_EQ(line.checked.config.cpus, 16u);
  EXPECT_EQ(line.checked.config.scenario_knobs.expedited, 1);
  EXPECT_EQ(line.checked.config.scenario_knobs.async, 0);
  EXPECT_EQ(line.checked.config.scenario_knobs.writers, 4u);
  EXPECT_EQ(line.checked.config.scenario_knobs.readers, 2u);
  EXPECT_EQ(line.checked.config.scenario_knobs.measurements, 50u);
  EXPECT_TRUE(line.services.durations);
  EXPECT_EQ(Parse({"rcu", "scale", "--async"}).checked.config.scenario_knobs.async, 1);
  EXPECT_TRUE(Contains(ErrorOf({"rcu", "scale", "--async", "--expedited"}), "--async: "));
  EXPECT_TRUE(Contains(ErrorOf({"rcu", "scale", "--cpus=4", "--writers=5"}), "--writers: "));
  EXPECT_TRUE(Contains(
      ErrorOf({"rcu", "scale", "--cpus=8", "--topology=threads=2", "--smt=off", "--writers=5"}),
      "the limit is 4"));
  EXPECT_TRUE(Contains(ErrorOf({"rcu", "scale", "--measurements=0"}), "--measurements: "));
}

TEST(ServiceFlags, RcuTorture) {
  const CommandLine line = Parse({"rcu", "torture", "--cpus=2", "--seconds=90", "--onoff=off"});
  EXPECT_EQ(line.checked.config.scenario_knobs.duration_ms, 90'000u);
  EXPECT_EQ(line.checked.config.scenario_knobs.onoff, 0);
  EXPECT_GT(line.checked.config.time_limit_ms, 90'000);
  EXPECT_EQ(Parse({"rcu", "torture"}).checked.config.scenario_knobs.duration_ms, 60'000u);
  EXPECT_EQ(Parse({"rcu", "torture", "--cpus=1"}).checked.config.scenario_knobs.onoff, 0);
  EXPECT_EQ(line.checked.config.scenario_knobs.readers, 1u);
  EXPECT_EQ(line.checked.config.scenario_knobs.writers, 4u);
  EXPECT_EQ(Parse({"rcu", "ref", "--cpus=8"}).checked.config.scenario_knobs.readers, 6u);
  EXPECT_TRUE(Contains(ErrorOf({"rcu", "torture", "--cpus=1", "--onoff=on"}), "--onoff: "));
  EXPECT_TRUE(Contains(ErrorOf({"rcu", "torture", "--seconds=0"}), "--seconds: "));
}

// What the guest would take by itself stands in the knobs, so that reports can name it.
TEST(ServiceFlags, DefaultsOfThreadCountsAreNumbers) {
  const auto knobs = [](std::vector<std::string> args) {
    return Parse(std::move(args)).checked.config.scenario_knobs;
  };
  EXPECT_EQ(knobs({"rcu", "ref", "--cpus=16"}).readers, 12u);
  EXPECT_EQ(knobs({"rcu", "ref", "--cpus=1"}).readers, 1u);
  EXPECT_EQ(knobs({"rcu", "ref", "--cpus=16", "--readers=2"}).readers, 2u);
  EXPECT_EQ(knobs({"rcu", "torture", "--cpus=16"}).readers, 15u);
  EXPECT_EQ(knobs({"rcu", "torture", "--cpus=1"}).readers, 1u);
  EXPECT_EQ(knobs({"rcu", "torture", "--cpus=16"}).writers, 4u);
  EXPECT_EQ(knobs({"rcu", "torture", "--cpus=16", "--writers=7"}).writers, 7u);
  EXPECT_EQ(knobs({"rcu", "scale", "--cpus=16"}).writers, 16u);
  EXPECT_EQ(knobs({"rcu", "scale", "--cpus=16"}).readers, 0u);
  EXPECT_EQ(knobs({"rcu", "callrcu", "--cpus=16"}).writers, 16u);
  EXPECT_TRUE(Contains(Parse({"rcu", "ref", "--help"}).help, "a quarter"));
}

TEST(ServiceFlags, CallRcuRunsEachPinning) {
  EXPECT_EQ(Parse({"rcu", "callrcu"}).pinnings.size(), 3u);
  const CommandLine line = Parse({"rcu", "callrcu", "--pinning=at-start", "--callbacks=5"});
  EXPECT_EQ(line.pinnings, std::vector{abi::WorkerPinning::kAtStart});
  EXPECT_EQ(line.checked.config.scenario_knobs.measurements, 5u);
  EXPECT_EQ(line.checked.config.scenario_knobs.duration_ms, 10'000u);
  EXPECT_EQ(line.checked.config.scenario_knobs.queue_ms, 5'000u);
  EXPECT_TRUE(Contains(ErrorOf({"rcu", "callrcu", "--pinning=never"}), "--pinning: "));
  EXPECT_TRUE(Contains(ErrorOf({"rcu", "callrcu", "--trace=f"}), "choose one with --pinning"));
  EXPECT_EQ(Parse({"rcu", "callrcu", "--trace=f", "--pinning=lazy"}).pinnings.size(), 1u);
}

TEST(ServiceFlags, TheSimulatorHasThemToo) {
  const RunConfig config =
      Parse({"smt", "--machine=sim", "--cpus=1920", "--topology=threads=8"}).checked.config;
  EXPECT_EQ(config.machine, MachineKind::kSim);
  EXPECT_EQ(config.cpus, 1920u);
  EXPECT_GT(config.time_limit_ms, 3'600'000);
}

// What --smt=off leaves out cannot be asked to go.
TEST(ServiceFlags, SmtOffLeavesNothingToSwitch) {
  const std::vector<std::string> machine = {"--machine=sim", "--cpus=6", "--smt=off",
                                            "--topology=threads=2"};
  const auto with = [&machine](std::vector<std::string> args, const char* flag = "--seed=1") {
    args.insert(args.end(), machine.begin(), machine.end());
    args.emplace_back(flag);
    return args;
  };
  EXPECT_TRUE(Contains(ErrorOf(with({"smt"})), "--smt: off leaves out the siblings"));
  EXPECT_TRUE(Contains(ErrorOf(with({"run", "--scenario=hotplug"}, "--hotplug-cpu=1")),
                       "--hotplug-cpu: CPU 1 is a sibling, which --smt=off leaves out; give a "
                       "first thread, e.g. 2"));
  EXPECT_EQ(Parse(with({"run", "--scenario=hotplug"}, "--hotplug-cpu=2"))
                .checked.config.scenario_knobs.hotplug_cpu,
            2u);
  EXPECT_TRUE(Contains(ErrorOf(with({"run", "--scenario=hotplug"}, "--cpus=2")),
                       "--smt=off leaves all of them out"));
  EXPECT_EQ(Parse(with({"rcu", "torture"})).checked.config.scenario_knobs.onoff, 1);
  EXPECT_EQ(Parse(with({"rcu", "torture"}, "--cpus=2")).checked.config.scenario_knobs.onoff, 0);
  EXPECT_TRUE(Contains(ErrorOf(with({"rcu", "torture", "--onoff=on"}, "--cpus=2")),
                       "--onoff: one CPU cannot go off, and --smt=off"));
}

// Threads have stacks, which must fit into a guest; on a large machine there may be one per CPU.
TEST(ServiceFlags, ThreadsAreBounded) {
  const auto most = [](const char* command, const char* flag, const char* cpus) {
    return ErrorOf({"rcu", command, "--machine=sim", cpus, flag});
  };
  EXPECT_TRUE(Contains(most("torture", "--readers=129", "--cpus=2"),
                       "--readers: '129' is too large; the limit is 128"));
  EXPECT_TRUE(Contains(most("torture", "--writers=129", "--cpus=2"), "the limit is 128"));
  EXPECT_TRUE(Contains(most("scale", "--readers=65", "--cpus=1"), "the limit is 64"));
  EXPECT_TRUE(Contains(most("ref", "--readers=65", "--cpus=1"), "the limit is 64"));
  EXPECT_TRUE(Contains(most("torture", "--readers=4097", "--cpus=128"), "the limit is 4096"));
  EXPECT_EQ(Parse({"rcu", "torture", "--machine=sim", "--cpus=128", "--readers=4096"})
                .checked.config.scenario_knobs.readers,
            4096u);
}

}  // namespace
}  // namespace sipi
