// What the command line refuses says which flag it was, and takes nothing without a word.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "vmm/cli/command_line.h"

namespace sipi {
namespace {

CpuLimits Limits(const std::string&) {
  CpuLimits limits;
  limits.max_cpus = 1024;
  limits.max_apic_ids = 4096;
  return limits;
}

std::string ErrorOf(const std::vector<std::string>& args) {
  const absl::StatusOr<CommandLine> line = ParseCommandLine(args, Limits);
  return line.ok() ? "" : std::string(line.status().message());
}

bool Begins(const std::string& text, const std::string& with) { return text.rfind(with, 0) == 0; }
bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Its commands, with those that follow another one, as their help lists them.
std::vector<std::vector<std::string>> Commands() {
  std::vector<std::vector<std::string>> commands;
  for (const char* verb : {"run", "compare", "smt", "explore", "doctor", "bench published",
                           "params", "rcu scale", "rcu ref", "rcu callrcu", "rcu torture"}) {
    std::vector<std::string> words;
    for (const std::string& word : CLI::detail::split(verb, ' ')) words.push_back(word);
    commands.push_back(words);
  }
  return commands;
}

// The flags of a command that take a value, from its help.
std::vector<std::string> FlagsWithValues(std::vector<std::string> command) {
  command.push_back("--help");
  const std::string help = ParseCommandLine(command, Limits)->help;
  std::vector<std::string> flags;
  for (const std::string& line : CLI::detail::split(help, '\n')) {
    const size_t begin = line.find_first_not_of(' ');
    if (begin == std::string::npos || line.compare(begin, 2, "--") != 0) continue;
    const size_t end = line.find(' ', begin);
    const bool value = end != std::string::npos && end + 1 < line.size() && line[end + 1] != ' ';
    if (value) flags.push_back(line.substr(begin, end - begin));
  }
  return flags;
}

// Each flag once, with the last command that has it: parsing takes its time.
TEST(Refusals, NoCommandLetsAnEmptyValueTakeTheNextWord) {
  std::map<std::string, std::vector<std::string>> command_of;
  for (const std::vector<std::string>& command : Commands()) {
    const std::vector<std::string> flags = FlagsWithValues(command);
    EXPECT_EQ(flags.empty(), command[0] == "doctor") << command.back();
    for (const std::string& flag : flags) command_of[flag] = command;
  }
  EXPECT_GT(command_of.size(), 60u);
  command_of.erase("--append");  // may be empty
  for (auto& [flag, args] : command_of) {
    args.push_back(flag + "=");
    args.push_back("--cpus=4");
    const std::string error = ErrorOf(args);
    EXPECT_TRUE(Begins(error, flag + ": nothing stands after its =")) << args[0] << error;
    // As a shell makes of `--flag "$unset"`.
    args[args.size() - 2] = flag;
    args.insert(args.end() - 1, "");
    EXPECT_TRUE(Begins(ErrorOf(args), flag + ": its value is empty")) << args[0] << ErrorOf(args);
  }
  EXPECT_EQ(ErrorOf({"run", "--payload=/dev/null", "--append", ""}), "");
}

TEST(Refusals, OfANumberThatItsScenarioDoesNotHave) {
  EXPECT_TRUE(Begins(ErrorOf({"run", "--scenario-value=9"}), "--scenario-value: is for"));
  EXPECT_EQ(ErrorOf({"run", "--scenario=print", "--scenario-value=9"}), "");
}

TEST(Refusals, OfTheMachinesShapeNameTheFlag) {
  EXPECT_TRUE(Begins(ErrorOf({"run", "--topology=scokets=2"}), "--topology: 'scokets=2' is not"));
  EXPECT_TRUE(Begins(ErrorOf({"run", "--topology=cores=3", "--cpus=4"}), "--topology: "));
  EXPECT_TRUE(
      Begins(ErrorOf({"run", "--topology=sockets=65536,dies=65536,cores=65536,threads=65536"}),
             "--topology: it has too many CPUs"));
  EXPECT_TRUE(Begins(ErrorOf({"run", "--topology=cores=1025"}), "--topology: 1025 CPUs, but"));
  EXPECT_TRUE(Begins(ErrorOf({"run", "--topology=stride=4096", "--cpus=4"}), "--topology: the"));
  EXPECT_TRUE(Begins(ErrorOf({"run", "--apic-ids=0,x"}), "--apic-ids: 'x' is not an ID"));
  EXPECT_TRUE(Begins(ErrorOf({"run", "--apic-ids=0,0"}), "--apic-ids: 0 stands twice"));
  EXPECT_TRUE(Begins(ErrorOf({"run", "--apic-ids=0,4096"}), "--apic-ids: "));
  EXPECT_TRUE(Begins(ErrorOf({"run", "--apic=xapic", "--cpus=256"}), "--apic: the highest"));
}

TEST(Refusals, AFaultThatWouldBeDropped) {
  for (const char* command : {"run", "explore"}) {
    EXPECT_TRUE(Begins(ErrorOf({command, "--fault=no-start@1", "--fault=late@2:5"}),
                       "--fault: stands twice"));
  }
  EXPECT_EQ(ErrorOf({"run", "--cpus=2", "--cpus=4"}), "") << "others can be overridden";
  EXPECT_TRUE(
      Begins(ErrorOf({"run", "--cpus=1", "--firmware-lies=1"}), "--firmware-lies: needs an AP"));
}

// The guest's reference clock comes round in less time than such a window takes.
TEST(Refusals, ACalibrationWindowLongerThanItsClockCanMeasure) {
  EXPECT_TRUE(Begins(ErrorOf({"run", "--calibration-us=4000001"}),
                     "--calibration-us: '4000001' is too large; the limit is 4000000"));
  EXPECT_TRUE(Contains(ErrorOf({"run", "--calibration-us=4000001"}), "--clock=known"));
  EXPECT_EQ(ErrorOf({"run", "--calibration-us=4000000"}), "");
  EXPECT_EQ(ErrorOf({"run", "--calibration-us=4000001", "--clock=known"}), "");
  EXPECT_EQ(ErrorOf({"run", "--calibration-us=10000000", "--clock=known"}), "");
}

TEST(Refusals, AFaultThatKvmCannotHave) {
  EXPECT_TRUE(Begins(ErrorOf({"run", "--fault=tsc-ahead@1:5"}), "--fault: tsc-ahead: KVM"));
  EXPECT_EQ(ErrorOf({"run", "--machine=sim", "--fault=tsc-ahead@1:5"}), "");
  EXPECT_TRUE(Begins(ErrorOf({"explore", "--schedule=exhaustive", "--fault=tsc-ahead@1:5"}),
                     "--fault: exploring takes those that bring-up must survive"));
}

TEST(Refusals, EchoNothingThatATerminalWouldObey) {
  for (const char* flag : {"--topology", "--apic-ids", "--order", "--hide", "--strategy"}) {
    const std::string error = ErrorOf({"run", std::string(flag) + "=\x1b[2J"});
    EXPECT_TRUE(Begins(error, flag)) << error;
    EXPECT_FALSE(Contains(error, "\x1b")) << flag;
  }
}

TEST(Refusals, ExploringIgnoresNoFlag) {
  for (const char* strategy : {"full+reuse", "full+overlap", "full+reuse+overlap"}) {
    for (const char* schedule : {"random", "exhaustive"}) {
      EXPECT_TRUE(Begins(ErrorOf({"explore", std::string("--strategy=") + strategy,
                                  std::string("--schedule=") + schedule}),
                         "--strategy: takes no +reuse"))
          << strategy;
    }
  }
  EXPECT_EQ(ErrorOf({"explore", "--strategy=full"}), "");
  EXPECT_TRUE(Begins(ErrorOf({"explore", "--merge=,"}), "--merge: a name is empty"));
  EXPECT_TRUE(Begins(ErrorOf({"explore", "--merge=a.json,"}), "--merge: a name is empty"));
  EXPECT_TRUE(Begins(ErrorOf({"explore", "--state=-"}), "--state: nobody can go on"));
}

}  // namespace
}  // namespace sipi
