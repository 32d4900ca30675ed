// Files that a command writes: none goes over another one, or over what it reads.
#include "vmm/cli/outputs.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "vmm/cli/command_line.h"
#include "vmm/cli/run_flags.h"
#include "vmm/cli/scenario_run.h"

namespace sipi {
namespace {

namespace fs = std::filesystem;

class OutputsTest : public testing::Test {
 protected:
  OutputsTest() {
    std::string name = testing::TempDir() + "/sipi_outputs_" + std::string(6, 'X');
    dir_ = mkdtemp(name.data());
  }
  ~OutputsTest() override { fs::remove_all(dir_); }

  std::string Path(const std::string& name) const { return dir_ + "/" + name; }
  std::string Make(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name)) << text;
    return Path(name);
  }
  static std::string Read(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  static std::string Clash(const std::string& output, const std::string& input) {
    return std::string(CheckFilesApart({{"--json", output}}, {{"--payload", input}}).message());
  }

  std::string dir_;
};

TEST_F(OutputsTest, AnOutputIsNoInputUnderAnyNameOfIt) {
  const std::string file = Make("payload", "kept");
  fs::create_symlink(file, Path("symbolic"));
  fs::create_hard_link(file, Path("hard"));
  for (const std::string& name :
       {file, Path("symbolic"), Path("hard"), dir_ + "/./payload",
        dir_ + "/../" + fs::path(dir_).filename().string() + "/payload"}) {
    EXPECT_EQ(Clash(name, file),
              "--json would overwrite " + file + ", which --payload reads; give it another file");
  }
  EXPECT_EQ(Clash(Path("other"), file), "");
  EXPECT_EQ(Clash("", ""), "");
  EXPECT_EQ(Clash("-", file), "");
}

TEST_F(OutputsTest, TwoOutputsAreTwoFiles) {
  const auto both = [](const std::string& a, const std::string& b) {
    return std::string(CheckFilesApart({{"--state", a}, {"--save", b}}, {}).message());
  };
  const std::string file = Make("file", "kept");
  fs::create_hard_link(file, Path("hard"));
  EXPECT_EQ(both(file, Path("hard")),
            "--state and --save both name " + file + "; give each its own file");
  EXPECT_NE(both(Path("new"), dir_ + "/./new"), "") << "none exists yet";
  EXPECT_NE(both("-", "/dev/stdout"), "");
  EXPECT_NE(both("new", fs::absolute("./new").string()), "");
  EXPECT_EQ(both(file, Path("new")), "");
  EXPECT_EQ(both("", ""), "");
}

TEST_F(OutputsTest, FlagsTellWhatIsRead) {
  RawFlags flags;
  flags.payload = "a.elf";
  flags.order = "file:order.txt";
  flags.profile = "mine.json";
  std::vector<std::string> paths;
  for (const NamedFile& input : InputsOf(flags)) paths.push_back(input.path);
  EXPECT_EQ(paths, (std::vector<std::string>{"a.elf", "mine.json", "order.txt"}));
  EXPECT_EQ(InputsOf(RawFlags()).size(), 1u) << "native is no file";
}

// The serial output of all of a command's runs: what stood there goes once the first machine
// exists, and what a run has written stays.
TEST_F(OutputsTest, SerialFilesLoseOldBytesOnlyAndOnlyToAMachine) {
  const std::string path = Make("serial", "what was there, which is much longer than what comes");
  RawFlags raw;
  raw.machine = "sim";
  raw.cpus = "2";
  raw.scenario = "print";
  raw.scenario_value = "64";
  CommandLine line;
  line.flags = raw;
  line.checked = MakeRunConfig(raw, SimulatorCpuLimits()).value();
  absl::StatusOr<SerialOutput> serial = OpenSerial(path, "none");
  ASSERT_TRUE(serial.ok()) << serial.status();

  StopRequest stop;
  int status = 0;
  RunConfig impossible = line.checked.config;
  impossible.order = {7};
  EXPECT_FALSE(RunScenario(line, impossible, *serial, stop, status).has_value());
  EXPECT_NE(status, 0);
  EXPECT_EQ(Read(path).rfind("what was there", 0), 0u) << "no machine, so nothing goes";

  EXPECT_TRUE(RunScenario(line, line.checked.config, *serial, stop, status).has_value());
  const std::string once = Read(path);
  EXPECT_FALSE(once.empty());
  EXPECT_EQ(once.find("what was there"), std::string::npos);
  EXPECT_EQ(once.find("than what comes"), std::string::npos);
  EXPECT_TRUE(RunScenario(line, line.checked.config, *serial, stop, status).has_value());
  EXPECT_EQ(Read(path), once + once);
}

}  // namespace
}  // namespace sipi
