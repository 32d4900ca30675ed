#include "vmm/cli/command_line.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/cli/strategy_flag.h"
#include "vmm/timeline/strategy_name.h"

namespace sipi {
namespace {

CpuLimits SmallHost(const std::string& /*device*/) { return {1024, 4096, 2}; }

CommandLine Parse(const std::vector<std::string>& args) {
  absl::StatusOr<CommandLine> line = ParseCommandLine(args, SmallHost);
  EXPECT_TRUE(line.ok()) << line.status();
  return line.ok() ? *std::move(line) : CommandLine();
}

std::string ErrorOf(const std::vector<std::string>& args) {
  const absl::StatusOr<CommandLine> line = ParseCommandLine(args, SmallHost);
  EXPECT_FALSE(line.ok());
  std::string message(line.status().message());
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return message;
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(CommandLine, RunHasDefaults) {
  const RunConfig config = Parse({"run"}).checked.config;
  EXPECT_EQ(config.cpus, 4u);
  EXPECT_EQ(config.irqchip, IrqchipKind::kUser);
  EXPECT_EQ(config.apic_mode, abi::ApicMode::kX2Apic);
  EXPECT_EQ(config.strategy.id, sequence::StrategyId::kSerial);
  EXPECT_EQ(config.order, (std::vector<uint32_t>{1, 2, 3}));
  EXPECT_EQ(config.profile.name, "native");
  EXPECT_EQ(config.knobs.kick.sipi_count, 2);
  EXPECT_EQ(config.knobs.handshake_timeout_ms, 10'000u);
  EXPECT_FALSE(config.clock_known);
}

TEST(CommandLine, EveryKnobArrives) {
  const RunConfig config = Parse({"run",
                                  "--cpus=8",
                                  "--irqchip=split",
                                  "--apic=xapic",
                                  "--driver=host",
                                  "--init-delay-us=10000",
                                  "--sipi-count=1",
                                  "--sipi-delay-us=300+200",
                                  "--init-deassert",
                                  "--trampoline-lock=off",
                                  "--ap-wait=spin",
                                  "--ap-id=cpuid-b",
                                  "--cache-setup=rendezvous",
                                  "--topology-update=lockless",
                                  "--tsc-check=on",
                                  "--reuse-scope=core",
                                  "--veto=vendor",
                                  "--handshake-timeout-ms=250",
                                  "--calibration-us=500",
                                  "--clock=known",
                                  "--time-limit-s=3",
                                  "--memory=64M",
                                  "--scenario=print",
                                  "--scenario-value=10000000",
                                  "--firmware-lies=3,5",
                                  "--fault=no-start@7",
                                  "--count-instructions",
                                  "--seed=99",
                                  "--strategy=tree+reuse"})
                               .checked.config;
  EXPECT_EQ(config.irqchip, IrqchipKind::kSplit);
  EXPECT_EQ(config.apic_mode, abi::ApicMode::kXApic);
  EXPECT_EQ(config.driver, abi::Driver::kHost);
  EXPECT_EQ(config.knobs.kick.init_delay_us, 10'000u);
  EXPECT_EQ(config.knobs.kick.sipi_count, 1);
  EXPECT_EQ(config.knobs.kick.sipi_delay_us, 300u);
  EXPECT_EQ(config.knobs.kick.sipi_idle_delay_us, 200u);
  EXPECT_EQ(config.knobs.kick.init_deassert, 1);
  EXPECT_EQ(config.knobs.trampoline_lock, 0);
  EXPECT_EQ(config.knobs.ap_wait, abi::WaitMode::kSpin);
  EXPECT_EQ(config.knobs.ap_id_source, abi::ApIdSource::kCpuidB);
  EXPECT_EQ(config.knobs.cache_setup, abi::CacheSetup::kRendezvous);
  EXPECT_EQ(config.knobs.topology_update, abi::TopologyUpdate::kLockless);
  EXPECT_EQ(config.knobs.tsc_check, 1);
  EXPECT_EQ(config.knobs.reuse_scope, abi::ReuseScope::kCore);
  EXPECT_EQ(config.knobs.veto, abi::Veto::kVendor);
  EXPECT_EQ(config.knobs.handshake_timeout_ms, 250u);
  EXPECT_EQ(config.knobs.calibration_us, 500u);
  EXPECT_TRUE(config.clock_known);
  EXPECT_EQ(config.time_limit_ms, 3000);
  EXPECT_EQ(config.memory_bytes, 64u << 20);
  EXPECT_EQ(config.scenario, abi::Scenario::kPrint);
  EXPECT_EQ(config.scenario_value, 10'000'000u);
  EXPECT_EQ(config.firmware_lies, (std::vector<uint32_t>{3, 5}));
  EXPECT_EQ(config.fault.kind, abi::Fault::kNoStart);
  EXPECT_EQ(config.fault.cpu, 7u);
  EXPECT_TRUE(config.count_instructions);
  EXPECT_EQ(config.seed, 99u);
  EXPECT_EQ(StrategyName(config.strategy), "tree+reuse");
}

TEST(CommandLine, SecondTriesSiblingsAndStealTime) {
  const RunConfig plain = Parse({"run", "--topology=cores=2,threads=2"}).checked.config;
  EXPECT_FALSE(plain.retry);
  EXPECT_TRUE(plain.smt);
  EXPECT_EQ(plain.order, (std::vector<uint32_t>{1, 2, 3}));
  EXPECT_EQ(plain.steal.period_ms, 0u);

  const RunConfig given = Parse({"run", "--machine=sim", "--topology=cores=2,threads=2", "--retry",
                                 "--smt=off", "--steal=50:1:20"})
                              .checked.config;
  EXPECT_TRUE(given.retry);
  EXPECT_FALSE(given.smt);
  EXPECT_EQ(given.order, (std::vector<uint32_t>{2}));
  EXPECT_EQ(given.steal.period_ms, 50u);
  EXPECT_EQ(given.steal.min_ms, 1u);
  EXPECT_EQ(given.steal.max_ms, 20u);

  EXPECT_TRUE(Contains(ErrorOf({"run", "--steal=50:1:20"}), "use it with --machine=sim"));
  for (const char* wrong : {"--steal=50", "--steal=50:1:20:3", "--steal=0:1:20", "--steal=50:20:1",
                            "--steal=50:1:x", "--steal=50:1:60001"}) {
    EXPECT_TRUE(Contains(ErrorOf({"run", "--machine=sim", wrong}), "--steal")) << wrong;
  }
  EXPECT_TRUE(Contains(ErrorOf({"run", "--smt=maybe"}), "--smt"));
  EXPECT_TRUE(Contains(ErrorOf({"run", "--driver=host", "--retry"}), "--retry"));
}

TEST(CommandLine, SipiDelayOfOnePartHasNoSecondWait) {
  const sequence::KickTiming kick = Parse({"run", "--sipi-delay-us=20"}).checked.config.knobs.kick;
  EXPECT_EQ(kick.sipi_delay_us, 20u);
  EXPECT_EQ(kick.sipi_idle_delay_us, 0u);
  EXPECT_TRUE(Contains(ErrorOf({"run", "--sipi-delay-us=1+2+3"}), "--sipi-delay-us"));
}

TEST(CommandLine, ExhaustiveExplorationIsForTwoOrThreeCpus) {
  const std::string mode = "--schedule=exhaustive";
  const ExploreFlags plain = Parse({"explore", mode}).explore;
  ASSERT_TRUE(plain.exhaustive.has_value());
  EXPECT_EQ(plain.exhaustive->plan.space.cpus, 2u);
  EXPECT_EQ(plain.exhaustive->plan.preemptions, 2u);
  EXPECT_FALSE(plain.exhaustive->plan.seed.has_value());
  EXPECT_EQ(plain.exhaustive->store_buffer, (std::vector<bool>{false, true}));
  const ExploreFlags given = Parse({"explore", mode, "--cpus=3", "--preemptions=1",
                                    "--store-buffer=on", "--fault=lost-init@2", "--replay=3:1"})
                                 .explore;
  EXPECT_EQ(given.exhaustive->plan.fault.cpu, 2u);
  EXPECT_EQ(given.exhaustive->store_buffer, std::vector<bool>{true});
  EXPECT_EQ(*given.exhaustive->replay, (ChoiceList{0, 0, 0, 1}));
  EXPECT_TRUE(Contains(ErrorOf({"explore", mode, "--cpus=4"}), "--cpus: 4 CPUs have too many"));
  EXPECT_TRUE(
      Contains(ErrorOf({"explore", mode, "--fault=hang@1"}), "--fault: exploring takes those"));
  EXPECT_TRUE(Contains(ErrorOf({"explore", mode, "--shard=1/2"}), "--shard"));
  EXPECT_TRUE(Contains(ErrorOf({"explore", mode, "--save=x"}), "--save"));
  EXPECT_EQ(Parse({"explore", "--replay=case.json"}).explore.replay_file, "case.json");
  EXPECT_EQ(Parse({"explore", "--replay=7"}).explore.replay, 7u);
  EXPECT_TRUE(Contains(ErrorOf({"explore", mode, "--replay=7"}), "--replay"));
  EXPECT_TRUE(Contains(ErrorOf({"explore", "--preemptions=1"}), "add --schedule=exhaustive"));
  EXPECT_FALSE(Parse({"explore"}).explore.exhaustive.has_value());
}

// What would be left undone without a word.
TEST(CommandLine, ExploreRefusesFilesThatItWouldNotUse) {
  const auto error = [](const char* a, const char* b) { return ErrorOf({"explore", a, b}); };
  EXPECT_EQ(error("--replay=case.json", "--save=x").rfind("--save: ", 0), 0u);
  EXPECT_EQ(error("--replay=7", "--state=x").rfind("--state: ", 0), 0u);
  EXPECT_EQ(error("--merge=a", "--state=x").rfind("--state: ", 0), 0u);
  EXPECT_EQ(error("--merge=a", "--save=x").rfind("--save: ", 0), 0u);
  EXPECT_EQ(error("--merge=a", "--replay=7").rfind("--replay: ", 0), 0u);
  EXPECT_EQ(Parse({"explore", "--replay=7", "--save=x"}).explore.save_file, "x");
}

// V2: refused before any VM is made, with the limit and its value.
TEST(CommandLine, RefusesCountsThatNoHostHas) {
  EXPECT_EQ(ErrorOf({"run", "--cpus=0"}), "--cpus: '0' is too small; the least is 1");
  EXPECT_TRUE(Contains(ErrorOf({"run", "--cpus=-1"}), "--cpus: '-1' is not a number"));
  EXPECT_TRUE(Contains(ErrorOf({"run", "--cpus=abc"}),
                       "--cpus: 'abc' is not a number; give one from 1 to 1024"));
  const std::string above = "is above the host's limit of 1024 vCPUs; give at most that many";
  EXPECT_EQ(ErrorOf({"run", "--cpus=1025"}), "--cpus: '1025' " + above);
  EXPECT_EQ(ErrorOf({"run", "--cpus=99999999999"}), "--cpus: '99999999999' " + above);
  EXPECT_EQ(ErrorOf({"compare", "--cpus=99999999999999999999"}),
            "--cpus: '99999999999999999999' " + above);
  EXPECT_EQ(Parse({"run", "--cpus=1024"}).checked.config.cpus, 1024u);
  EXPECT_EQ(Parse({"run", "--cpus=1"}).checked.config.order.size(), 0u);
}

TEST(CommandLine, RefusesIdsAboveTheHostsLimit) {
  EXPECT_TRUE(Contains(ErrorOf({"run", "--apic-ids=0,4096"}), "4096"));
  EXPECT_EQ(Parse({"run", "--apic-ids=7,0,254,256,4095"}).checked.config.cpus, 5u);
}

TEST(CommandLine, MoreThanRecommendedIsANoteOnly) {
  EXPECT_FALSE(Parse({"run", "--cpus=3"}).checked.note.empty());
  EXPECT_TRUE(Parse({"run", "--cpus=2"}).checked.note.empty());
}

TEST(CommandLine, XApicTakes255CpusAndIdsBelow255) {
  EXPECT_EQ(Parse({"run", "--apic=xapic", "--cpus=255"}).checked.config.cpus, 255u);
  EXPECT_TRUE(Contains(ErrorOf({"run", "--apic=xapic", "--cpus=256"}), "x2apic"));
  EXPECT_TRUE(Contains(ErrorOf({"run", "--apic=xapic", "--apic-ids=0,255"}), "x2apic"));
}

TEST(CommandLine, TopologySaysTheCount) {
  const RunConfig config = Parse({"run", "--topology=sockets=2,cores=16,threads=2"}).checked.config;
  EXPECT_EQ(config.cpus, 64u);
  EXPECT_EQ(config.topology.sockets, 2u);
  EXPECT_FALSE(
      ParseCommandLine({"run", "--cpus=5", "--topology=sockets=2,cores=2"}, SmallHost).ok());
  EXPECT_FALSE(
      ParseCommandLine({"run", "--topology=sockets=9999999,cores=9999999"}, SmallHost).ok());
}

TEST(CommandLine, ProfileBringsItsOwnMachine) {
  const RunConfig config = Parse({"run", "--profile=server-128"}).checked.config;
  EXPECT_EQ(config.cpus, 128u);
  EXPECT_GT(config.topology.threads_per_core, 1u);
  const RunConfig smaller = Parse({"run", "--profile=server-128", "--cpus=64"}).checked.config;
  EXPECT_EQ(smaller.cpus, 64u);
  EXPECT_EQ(Parse({"run", "--profile=server-128", "--init-delay-us=7"})
                .checked.config.knobs.kick.init_delay_us,
            7u);
}

TEST(CommandLine, UnknownProfileNamesThoseThereAre) {
  const std::string error = ErrorOf({"run", "--profile=server-129"});
  EXPECT_TRUE(Contains(error, "server-128")) << error;
}

// A FIFO without a writer: an open(2) that waits for one would never come back.
TEST(CommandLine, FilesThatAreNoneAreRefusedAndNotWaitedFor) {
  const std::string fifo = testing::TempDir() + "command_line_fifo.json";
  unlink(fifo.c_str());
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const auto& [flag, prefix] : {std::pair("--profile", ""), std::pair("--order", "file:")}) {
    const std::string error = ErrorOf({"run", std::string(flag) + "=" + prefix + fifo});
    EXPECT_EQ(error.rfind(std::string(flag) + ": " + fifo + ": is not a regular file; name one", 0),
              0u)
        << error;
  }
  unlink(fifo.c_str());
}

TEST(CommandLine, SimulatorTakesTheSameFlagsAndAsksForNoKvm) {
  const auto no_kvm = [](const std::string&) -> CpuLimits {
    ADD_FAILURE() << "KVM was asked";
    return {};
  };
  const absl::StatusOr<CommandLine> line = ParseCommandLine(
      {"run", "--machine=sim", "--cpus=8192", "--strategy=full", "--host-cores=2"}, no_kvm);
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->checked.config.machine, MachineKind::kSim);
  EXPECT_EQ(line->checked.config.cpus, 8192u);
  EXPECT_EQ(line->checked.config.host_cores, 2u);
  EXPECT_EQ(line->checked.note, "");
}

TEST(CommandLine, WhatTheSimulatorDoesNotHaveIsRefused) {
  for (const char* flag : {"--irqchip=split", "--irqchip=kernel", "--driver=host", "--memory=1G",
                           "--count-instructions", "--kvm-device=/dev/null"}) {
    const std::string name = std::string(flag).substr(0, std::string(flag).find('='));
    const std::string error = ErrorOf({"run", "--machine=sim", flag});
    EXPECT_EQ(error.rfind(name + ": ", 0), 0u) << error;
    EXPECT_TRUE(Contains(error, "or use --machine=kvm")) << error;
  }
  EXPECT_TRUE(Contains(ErrorOf({"run", "--machine=sim", "--cpus=99999"}), "simulator's limit"));
  EXPECT_TRUE(Contains(ErrorOf({"run", "--host-cores=2"}), "use it with --machine=sim"));
  EXPECT_TRUE(Contains(ErrorOf({"params", "--machine=sim", "--out=x"}), "--machine: "));
  EXPECT_TRUE(Contains(ErrorOf({"run", "--machine=xen"}), "it takes kvm"));
}

TEST(CommandLine, BenchWantsToKnowOfWhat) {
  const absl::StatusOr<CommandLine> line =
      ParseCommandLine({"bench", "published", "--runs=3"}, nullptr);
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->verb, Verb::kPublished);
  EXPECT_EQ(line->published_runs, 3u);
  EXPECT_TRUE(Contains(ErrorOf({"bench"}), "give published"));
  EXPECT_TRUE(Contains(ErrorOf({"bench", "publish"}), "published"));
}

TEST(CommandLine, UnknownFlagsGetASuggestion) {
  EXPECT_EQ(ErrorOf({"run", "--cpu=3"}),
            "unknown flag '--cpu'; did you mean '--cpus'? sipi run --help tells what there is");
  EXPECT_TRUE(Contains(ErrorOf({"compare", "--strategy=full"}), "did you mean '--strategies'?"));
  EXPECT_TRUE(Contains(ErrorOf({"doctor", "--cpus=3"}), "unknown flag '--cpus'"));
  EXPECT_TRUE(Contains(ErrorOf({"run", "--wobble"}), "unknown flag '--wobble'; sipi run --help"));
  EXPECT_TRUE(Contains(ErrorOf({"run", "-n", "3"}), "unknown flag '-n'"));
  EXPECT_TRUE(Contains(ErrorOf({"run", "full"}), "unexpected word 'full'"));
  EXPECT_EQ(ErrorOf({"--cpus=3", "run"}),
            "flag '--cpus' stands in the wrong place; put it after run");
}

TEST(CommandLine, UnknownCommandsGetASuggestion) {
  EXPECT_TRUE(Contains(ErrorOf({"comapre"}), "did you mean 'compare'?"));
  EXPECT_TRUE(Contains(
      ErrorOf({}), "no command; give run, compare, smt, rcu, explore, doctor, bench or params"));
  EXPECT_TRUE(Contains(ErrorOf({"run", "compare"}), "compare"));
}

TEST(CommandLine, FlagsWithoutTheirValueAreRefused) {
  EXPECT_TRUE(Contains(ErrorOf({"run", "--cpus"}), "--cpus"));
  EXPECT_TRUE(Contains(ErrorOf({"run", "--cpus="}), "--cpus"));
  EXPECT_FALSE(ParseCommandLine({"run", "--quiet=maybe"}, SmallHost).ok());
}

// CLI11 takes the word after an empty `--flag=` for its value.
TEST(CommandLine, NothingAfterTheEqualsSignIsNamedAndTakesNoOtherWord) {
  for (const std::string flag : {"--payload", "--cpus", "--json", "--env", "--kvm-device"}) {
    const std::string wanted =
        flag + ": nothing stands after its =; give a value, or leave the flag out";
    EXPECT_EQ(ErrorOf({"run", flag + "=", "--quiet"}), wanted);
    EXPECT_EQ(ErrorOf({"run", "--quiet", flag + "="}), wanted);
  }
  EXPECT_EQ(ErrorOf({"explore", "--state=", "--jobs=1"}).rfind("--state: nothing", 0), 0u);
  EXPECT_EQ(ErrorOf({"run", "--quiet="}).rfind("--quiet: nothing", 0), 0u);
  EXPECT_TRUE(Contains(ErrorOf({"run", "--wobble="}), "unknown flag '--wobble'"));
}

TEST(CommandLine, AppendMayBeEmpty) {
  const std::vector<std::string> run = {"run", "--payload=x"};
  const auto with = [&run](const std::vector<std::string>& more) {
    std::vector<std::string> args = run;
    args.insert(args.end(), more.begin(), more.end());
    return Parse(args);
  };
  const CommandLine between = with({"--append=", "--cpus=3"});
  EXPECT_EQ(between.flags.append, "");
  EXPECT_EQ(between.checked.config.cpus, 3u);
  EXPECT_EQ(with({"--append="}).flags.append, "");
  EXPECT_EQ(with({"--append=a", "--append="}).flags.append, "") << "the last one counts";
  EXPECT_EQ(with({"--append=a=", "--quiet"}).flags.append, "a=");
  EXPECT_EQ(with({"--append", "--cpus="}).flags.append, "--cpus=") << "a value, not a flag";
}

TEST(CommandLine, TheLastOfARepeatedFlagCounts) {
  EXPECT_EQ(Parse({"run", "--cpus=2", "--cpus=3"}).checked.config.cpus, 3u);
}

TEST(CommandLine, HelpHasAnExampleForEachCommand) {
  for (const char* verb : {"run", "compare", "doctor", "params"}) {
    const CommandLine line = Parse({verb, "--help"});
    EXPECT_EQ(line.verb, Verb::kHelp);
    EXPECT_TRUE(Contains(line.help, std::string("\n  sipi ") + verb)) << line.help;
    EXPECT_FALSE(Contains(line.help, "--kvm-device"));
  }
  EXPECT_TRUE(Contains(Parse({"--help"}).help, "sipi compare --cpus=32"));
}

// CLI11 takes an empty flag's neighbour for its value: of every command.
TEST(CommandLine, NothingAfterTheEqualsSignIsNamedAtNestedCommandsToo) {
  EXPECT_EQ(ErrorOf({"smt", "--rounds=", "--quiet"}).rfind("--rounds: nothing", 0), 0u);
  EXPECT_EQ(ErrorOf({"rcu", "scale", "--writers=", "--quiet"}).rfind("--writers: nothing", 0), 0u);
}

TEST(CommandLine, CompareListsStrategiesAndItsBaseline) {
  const CompareOptions options =
      Parse({"compare", "--strategies=kick,full+reuse", "--runs=3", "--baseline=serial"}).compare;
  ASSERT_EQ(options.strategies.size(), 3u);
  EXPECT_EQ(StrategyName(options.strategies[0]), "serial");
  EXPECT_EQ(options.runs, 3u);
  EXPECT_EQ(Parse({"compare"}).compare.strategies.size(), 9u);
  EXPECT_TRUE(Contains(ErrorOf({"compare", "--runs=0"}), "--runs"));
  EXPECT_TRUE(Contains(ErrorOf({"compare", "--baseline=seriel"}), "did you mean 'serial'?"));
}

TEST(CommandLine, ParamsNeedsAFile) {
  EXPECT_TRUE(Contains(ErrorOf({"params"}), "--out"));
  EXPECT_EQ(Parse({"params", "--out=p.bin"}).params_file, "p.bin");
}

TEST(CommandLine, FirmwareLiesNeedAnAp) {
  EXPECT_FALSE(ParseCommandLine({"run", "--cpus=1", "--firmware-lies=1"}, SmallHost).ok());
  EXPECT_FALSE(ParseCommandLine({"run", "--cpus=4", "--firmware-lies=0"}, SmallHost).ok());
}

}  // namespace
}  // namespace sipi
