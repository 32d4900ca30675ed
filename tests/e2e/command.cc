#include "tests/e2e/command.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace sipi::e2e {
namespace {

double Now() {
  timespec ts{};
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return static_cast<double>(ts.tv_sec) + static_cast<double>(ts.tv_nsec) * 1e-9;
}

struct Pipe {
  std::array<int, 2> fd{-1, -1};
  Pipe() { EXPECT_EQ(pipe2(fd.data(), O_CLOEXEC), 0); }
  void CloseWrite() { close(fd[1]); }
};

[[noreturn]] void ExecChild(const std::vector<std::string>& args, const How& how, int out_fd,
                            int err_fd) {
  if (!how.stdout_to.empty())
    out_fd = open(how.stdout_to.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  dup2(out_fd, 1);
  dup2(err_fd, 2);
  if (how.in_child) how.in_child();
  const char* binary = getenv("SIPI_BINARY");
  std::vector<char*> argv{const_cast<char*>(binary)};
  for (const std::string& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  execv(binary, argv.data());
  _exit(127);
}

// Reads both pipes to their ends, or until the deadline.
bool Drain(Pipe& out, Pipe& err, Finished& result, double deadline) {
  std::array<pollfd, 2> polled{pollfd{out.fd[0], POLLIN, 0}, pollfd{err.fd[0], POLLIN, 0}};
  std::array<std::string*, 2> into{&result.out, &result.err};
  size_t open_ends = 2;
  while (open_ends > 0) {
    const double left = deadline - Now();
    if (left <= 0) return false;
    poll(polled.data(), polled.size(), static_cast<int>(left * 1000) + 1);
    for (size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].fd < 0 || polled[i].revents == 0) continue;
      std::array<char, 65536> buffer;
      const ssize_t got = read(polled[i].fd, buffer.data(), buffer.size());
      if (got > 0) {
        into[i]->append(buffer.data(), static_cast<size_t>(got));
      } else {
        close(polled[i].fd);
        polled[i].fd = -1;
        --open_ends;
      }
    }
  }
  return true;
}

}  // namespace

Finished Sipi(const std::vector<std::string>& args, const How& how) {
  Finished result;
  Pipe out, err;
  const double begin = Now();
  const pid_t pid = fork();
  if (pid == 0) ExecChild(args, how, out.fd[1], err.fd[1]);
  out.CloseWrite();
  err.CloseWrite();
  if (how.while_running) how.while_running(pid);
  const bool ended = Drain(out, err, result, begin + how.timeout_s);
  if (!ended) kill(pid, SIGKILL);
  int status = 0;
  waitpid(pid, &status, 0);
  result.seconds = Now() - begin;
  if (ended) result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  EXPECT_TRUE(ended) << "had to be killed after " << how.timeout_s << " s; stderr: " << result.err;
  return result;
}

bool KvmUsable() {
  static const int status = Sipi({"doctor"}).status;
  EXPECT_NE(status, 127) << "SIPI_BINARY does not name the command";
  return status == 0 || status == 127;
}

RunResult SipiRun(std::vector<std::string> args, const How& how) {
  const std::string path = TempPath("run.json");
  args.insert(args.begin(), "run");
  args.push_back("--json=" + path);
  RunResult run;
  run.finished = Sipi(args, how);
  const std::string text = ReadWholeFile(path);
  run.json = nlohmann::json::parse(text, nullptr, false);
  EXPECT_FALSE(run.json.is_discarded())
      << "no valid JSON in " << path << "; stderr: " << run.finished.err;
  unlink(path.c_str());
  return run;
}

std::string TempPath(const std::string& name) {
  static const std::string directory = [] {
    std::string text = testing::TempDir() + "sipi-e2e-XXXXXX";
    EXPECT_NE(mkdtemp(text.data()), nullptr);
    return text;
  }();
  static int counter = 0;
  return directory + "/" + std::to_string(++counter) + "-" + name;
}

std::string ReadWholeFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace sipi::e2e
