// Runs the `sipi` command as a user would: a process with flags, watched from outside.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sipi::e2e {

struct Finished {
  int status =
      -1;  // exit status; 128 + n if killed by signal n; -1 if it had to be killed by the test
  std::string out;
  std::string err;
  double seconds = 0;
};

struct How {
  double timeout_s = 60;
  std::string stdout_to = {};                       // a file instead of the pipe
  std::function<void(int pid)> while_running = {};  // called once, right after the start
  std::function<void()> in_child =
      {};  // called between fork and exec; async-signal-safe calls only
};

// argv[0] is taken from the environment variable SIPI_BINARY, which meson sets.
Finished Sipi(const std::vector<std::string>& args, const How& how = {});

// True if KVM can be used here. Tests skip themselves, with the reason, if not.
bool KvmUsable();

// Runs `sipi run` with --json and gives the JSON; fails the test if the file is not there or is not
// JSON.
struct RunResult {
  Finished finished;
  nlohmann::json json;
};
RunResult SipiRun(std::vector<std::string> args, const How& how = {});

// A fresh path in a directory of this test process.
std::string TempPath(const std::string& name);
std::string ReadWholeFile(const std::string& path);

}  // namespace sipi::e2e

#define SKIP_WITHOUT_KVM() \
  if (!::sipi::e2e::KvmUsable()) GTEST_SKIP() << "no usable /dev/kvm on this machine"
