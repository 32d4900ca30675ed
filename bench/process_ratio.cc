// Runs two or more commands alternately, many times, and prints how long each takes from process
// start to process end, what memory it needs at most, and the ratios to the first. For A/B
// measurements: whatever drifts on the host meets all commands alike.
//
//   process_ratio RUNS -- NAME[@STATUS] COMMAND... -- NAME[@STATUS] COMMAND... [-- ...]
//
// STATUS is the exit status that counts as success (0 unless given); another one ends the
// measurement, since a fast wrong run must not win. The commands' standard output is thrown away.
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

struct Command {
  std::string name;
  int status = 0;
  std::vector<char*> argv;  // ends in a null pointer
  std::vector<double> ms;
  long peak_rss_kib = 0;
};

[[noreturn]] void Usage(const char* problem) {
  std::fprintf(stderr,
               "process_ratio: %s; use process_ratio RUNS -- NAME[@STATUS] COMMAND... -- ...\n",
               problem);
  std::exit(2);
}

std::vector<Command> ParseCommands(int argc, char** argv) {
  std::vector<Command> commands;
  for (int i = 2; i < argc; ++i) {
    if (std::strcmp(argv[i], "--") == 0) {
      if (++i == argc) Usage("a name is missing after --");
      Command command;
      command.name = argv[i];
      const size_t at = command.name.find('@');
      if (at != std::string::npos) command.status = std::atoi(command.name.c_str() + at + 1);
      command.name.resize(std::min(at, command.name.size()));
      commands.push_back(std::move(command));
    } else if (commands.empty()) {
      Usage("RUNS must be followed by --");
    } else {
      commands.back().argv.push_back(argv[i]);
    }
  }
  for (Command& command : commands) {
    if (command.argv.empty()) Usage("a command is missing after its name");
    command.argv.push_back(nullptr);
  }
  if (commands.empty()) Usage("no command given");
  return commands;
}

// One run, measured on CLOCK_MONOTONIC around posix_spawn and wait4. Ends the process if the
// command fails.
void RunOnce(Command& command) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  const auto begin = std::chrono::steady_clock::now();
  pid_t pid = 0;
  const int error =
      posix_spawnp(&pid, command.argv[0], &actions, nullptr, command.argv.data(), environ);
  if (error != 0) {
    std::fprintf(stderr, "process_ratio: cannot start %s: %s\n", command.argv[0],
                 std::strerror(error));
    std::exit(1);
  }
  int status = 0;
  rusage usage = {};
  wait4(pid, &status, 0, &usage);
  const auto end = std::chrono::steady_clock::now();
  posix_spawn_file_actions_destroy(&actions);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != command.status) {
    std::fprintf(stderr, "process_ratio: %s ended with %s %d, not with status %d\n",
                 command.name.c_str(), WIFEXITED(status) ? "status" : "signal",
                 WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), command.status);
    std::exit(1);
  }
  command.ms.push_back(std::chrono::duration<double, std::milli>(end - begin).count());
  command.peak_rss_kib = std::max(command.peak_rss_kib, usage.ru_maxrss);
}

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double position = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, values.size() - 1);
  const double part = position - static_cast<double>(below);
  return values[below] * (1 - part) + values[above] * part;
}

void PrintTable(const std::vector<Command>& commands) {
  const Command& first = commands[0];
  std::printf("%-20s %5s %10s %9s %9s %9s %8s %7s %7s\n", "command", "runs", "median ms", "min ms",
              "max ms", "RSS MiB", "ratio", "25 %", "75 %");
  for (const Command& command : commands) {
    std::vector<double> ratios;
    for (size_t i = 0; i < command.ms.size(); ++i) ratios.push_back(command.ms[i] / first.ms[i]);
    const double median = Quantile(command.ms, 0.5);
    std::printf("%-20s %5zu %10.2f %9.2f %9.2f %9.2f %8.3f %7.3f %7.3f\n", command.name.c_str(),
                command.ms.size(), median, Quantile(command.ms, 0), Quantile(command.ms, 1),
                static_cast<double>(command.peak_rss_kib) / 1024.0,
                median / Quantile(first.ms, 0.5), Quantile(ratios, 0.25), Quantile(ratios, 0.75));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--help") == 0) {
    std::puts(
        "process_ratio RUNS -- NAME[@STATUS] COMMAND... -- ...: how long commands take, side by "
        "side");
    return 0;
  }
  const int runs = argc > 1 ? std::atoi(argv[1]) : 0;
  if (runs < 1) Usage("RUNS must be 1 or more");
  std::vector<Command> commands = ParseCommands(argc, argv);
  // The first run of each fills caches and is not counted, unless it is the only one.
  if (runs > 1) {
    for (Command& command : commands) RunOnce(command);
    for (Command& command : commands) command.ms.clear();
  }
  for (int round = 0; round < runs; ++round) {
    for (size_t i = 0; i < commands.size(); ++i) {
      RunOnce(commands[(i + static_cast<size_t>(round)) % commands.size()]);
    }
  }
  PrintTable(commands);
  return 0;
}
