// What the command says of itself, and which scenario each command takes.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace sipi::e2e {
namespace {

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

size_t LineCount(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

using Words = std::vector<std::string>;

// The command of each row, and what it needs to run in the simulator in a moment.
struct Command {
  Words name;
  Words flags;
  std::set<std::string> scenarios;  // that it takes by --scenario
};

std::vector<Command> Commands() {
  const std::set<std::string> bring_up = {"smpboot", "print", "ipi-all"};
  std::set<std::string> all = bring_up;
  all.insert("hotplug");
  return {{{"run"}, {"--machine=sim", "--cpus=2"}, all},
          {{"compare"}, {"--machine=sim", "--cpus=2", "--runs=1"}, bring_up},
          {{"smt"}, {"--machine=sim", "--cpus=2", "--topology=threads=2"}, {"smpboot"}},
          {{"rcu", "scale"}, {"--machine=sim", "--cpus=2", "--measurements=1"}, {"smpboot"}},
          {{"rcu", "ref"}, {"--machine=sim", "--cpus=2", "--rounds=1"}, {"smpboot"}},
          {{"rcu", "callrcu"},
           {"--machine=sim", "--cpus=2", "--callbacks=1", "--seconds=1"},
           {"smpboot"}},
          {{"rcu", "torture"}, {"--machine=sim", "--cpus=2", "--seconds=1"}, {"smpboot"}},
          {{"explore"}, {"--schedules=1", "--jobs=1"}, {"smpboot", "rcu"}}};
}

Words Join(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Every command with every scenario: either it runs, or it is refused in one line that says why.
// (`smpboot` is what smt and rcu do first: the default, which they may be told.)
TEST(CommandAndScenario, RunsOrIsRefused) {
  for (const Command& command : Commands()) {
    for (const std::string scenario : {"smpboot", "print", "ipi-all", "hotplug", "rcu", "smt"}) {
      const Words args =
          Join(command.name, Join(command.flags, {"--scenario=" + scenario, "--quiet"}));
      const Finished f = Sipi(args);
      const std::string what = command.name.back() + " --scenario=" + scenario;
      if (command.scenarios.contains(scenario)) {
        EXPECT_EQ(f.status, 0) << what << f.out << f.err;
      } else {
        EXPECT_EQ(f.status, 2) << what << f.out << f.err;
        EXPECT_EQ(LineCount(f.err), 1u) << what << f.err;
        EXPECT_TRUE(Contains(f.err, "--scenario: ")) << what << f.err;
      }
    }
  }
}

TEST(Help, UsageIsWhatOneTypes) {
  const std::map<Words, std::string> usages = {{{"run"}, "sipi run [OPTIONS]"},
                                               {{"compare"}, "sipi compare [OPTIONS]"},
                                               {{"rcu"}, "sipi rcu [OPTIONS] [SUBCOMMAND]"},
                                               {{"rcu", "scale"}, "sipi rcu scale [OPTIONS]"},
                                               {{"bench"}, "sipi bench [OPTIONS] what"}};
  for (const auto& [command, usage] : usages) {
    const Finished f = Sipi(Join(command, {"--help"}));
    EXPECT_EQ(f.status, 0);
    EXPECT_TRUE(Contains(f.out, "Usage: " + usage + "\n")) << f.out;
  }
}

TEST(Help, OfACommandThatDoesNotExistIsAnError) {
  const std::map<Words, std::string> nearest = {
      {{"comapre"}, "did you mean 'compare'?"},
      {{"nonsense"}, "there is no 'nonsense'"},
      {{"rcu", "tortur"}, "did you mean 'torture'?"},
      {{"bench", "publish"}, "did you mean 'published'?"}};
  for (const auto& [command, said] : nearest) {
    for (const Words& words : {Join(command, {"--help"}), Join({"--help"}, command)}) {
      const Finished f = Sipi(words);
      EXPECT_EQ(f.status, 2) << words[0] << f.out;
      EXPECT_TRUE(Contains(f.err, said)) << f.err;
      EXPECT_EQ(LineCount(f.err), 1u) << f.err;
    }
  }
}

TEST(Help, ShowsWhatTheCommandTakesAndNoMore) {
  const auto help = [](const Words& command) { return Sipi(Join(command, {"--help"})).out; };
  for (const Words& command :
       {Words{"smt"}, {"rcu", "scale"}, {"rcu", "ref"}, {"rcu", "callrcu"}, {"rcu", "torture"}}) {
    for (const char* flag : {"--scenario", "--driver"}) {
      EXPECT_FALSE(Contains(help(command), flag)) << command.back();
    }
  }
  for (const char* flag : {"--machine", "--host-cores", "--steal", "--driver", "--trace", "--json",
                           "--serial", "--time-limit-s", "--memory", "--count-instructions"}) {
    EXPECT_FALSE(Contains(help({"params"}), flag)) << flag;
    EXPECT_TRUE(Contains(help({"run"}), flag)) << flag;
    if (std::string(flag) == "--machine") continue;
    const Finished f = Sipi({"params", "--out=/dev/null", flag + std::string("=1")});
    EXPECT_EQ(f.status, 2) << flag;
  }
  EXPECT_TRUE(Contains(help({"run"}), "print|ipi-all|hotplug"));
  EXPECT_FALSE(Contains(help({"compare"}), "hotplug\n"));
  EXPECT_FALSE(Contains(help({"compare"}), "ipi-all|hotplug"));
  const std::string run = help({"run"});
  for (const char* profile : {"native", "haswell-28", "server-128", "ppc64-400", "ppc64-1920"}) {
    EXPECT_TRUE(Contains(run, profile)) << profile;
  }
}

// Lines are wrapped in help, so blanks are made one.
std::string Unwrapped(const std::string& text) {
  std::string flat;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\n';
    if (!blank) flat += c;
    if (blank && !flat.empty() && flat.back() != ' ') flat += ' ';
  }
  return flat;
}

TEST(Help, TellsTheTimeLimitThatTheCommandHas) {
  const std::map<Words, std::string> limits = {
      {{"run"},
       "(default 60; simulated: 3600 of virtual time; of hotplug 600; simulated: 1000000 of "
       "virtual "
       "time)"},
      {{"compare"}, "(default 60; simulated: 3600 of virtual time)"},
      {{"smt"}, "(default 600; simulated: 1000000 of virtual time)"},
      {{"rcu", "torture"},
       "(default 600; simulated: 1000000 of virtual time; and --seconds on top)"}};
  for (const auto& [command, said] : limits) {
    const std::string help = Unwrapped(Sipi(Join(command, {"--help"})).out);
    EXPECT_TRUE(Contains(help, said)) << help;
  }
}

TEST(Version, IsThatOfTheProject) {
  const Finished f = Sipi({"--version"});
  EXPECT_EQ(f.status, 0);
  EXPECT_EQ(f.out, "sipi " SIPI_VERSION "\n");
}

TEST(Cpus, ThatAreNoNumberAreToldTheMachinesLimit) {
  const std::string above = Sipi({"run", "--machine=sim", "--cpus=4000000000"}).err;
  const std::string limit_of = "simulator's limit of ";
  const size_t at = above.find(limit_of);
  ASSERT_NE(at, std::string::npos) << above;
  const std::string limit =
      above.substr(at + limit_of.size(), above.find(" vCPUs") - at - limit_of.size());
  const std::string none = Sipi({"run", "--machine=sim", "--cpus=abc"}).err;
  EXPECT_EQ(none, "sipi: --cpus: 'abc' is not a number; give one from 1 to " + limit + "\n");
}

}  // namespace
}  // namespace sipi::e2e
