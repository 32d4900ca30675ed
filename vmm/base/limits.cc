#include "vmm/base/limits.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "vmm/base/errno_status.h"

namespace sipi {
namespace {

// The first number of a file such as pids.max; nothing for "max", rubbish or no such file.
std::optional<uint64_t> ReadNumber(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  if (!(file >> word)) return std::nullopt;
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

// Number of scheduling entities of the host: the fourth field of /proc/loadavg, "running/all".
std::optional<uint64_t> ReadThreadCount(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  for (int i = 0; i < 4; ++i) {
    if (!(file >> word)) return std::nullopt;
  }
  const size_t slash = word.find('/');
  if (slash == std::string::npos) return std::nullopt;
  uint64_t value = 0;
  const char* begin = word.data() + slash + 1;
  if (std::from_chars(begin, word.data() + word.size(), value).ec != std::errc()) {
    return std::nullopt;
  }
  return value;
}

// Adds pids.max of the group at `base` + `group` and of each group above it, up to `base`.
void AddCgroupLimits(const std::string& base, std::string group, std::vector<ThreadLimit>& limits) {
  for (;;) {
    const std::string folder = base + (group == "/" ? "" : group);
    if (const auto max = ReadNumber(folder + "/pids.max")) {
      limits.push_back({absl::StrCat("cgroup pids.max (", folder, "/pids.max)"), *max,
                        ReadNumber(folder + "/pids.current").value_or(0),
                        absl::StrCat("raise it: echo max > ", folder,
                                     "/pids.max, or run in a container with a higher pids limit")});
    }
    const size_t slash = group.rfind('/');
    if (group.size() <= 1 || slash == std::string::npos) return;
    group.resize(slash);
  }
}

// /proc/self/cgroup: "0::/path" (version 2) and "4:pids:/path" (version 1); see cgroups(7).
void AddCgroups(const std::string& root, std::vector<ThreadLimit>& limits) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string hierarchy, controllers, group;
    std::getline(fields, hierarchy, ':');
    std::getline(fields, controllers, ':');
    std::getline(fields, group);
    if (controllers.empty()) {
      AddCgroupLimits(root + "/sys/fs/cgroup", group, limits);
    } else if (absl::StrCat(",", controllers, ",").find(",pids,") != std::string::npos) {
      AddCgroupLimits(root + "/sys/fs/cgroup/pids", group, limits);
    }
  }
}

}  // namespace

OpenFileLimitAccess HostOpenFileLimit() {
  return {
      .get = [](rlimit& limit) { return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? 0 : errno; },
      .set = [](const rlimit& limit) { return setrlimit(RLIMIT_NOFILE, &limit) == 0 ? 0 : errno; },
  };
}

uint64_t OpenFilesForVcpus(uint64_t cpus) {
  // One per vCPU; the rest is room for the standard streams, KVM, the VM, event descriptors, output
  // files and whatever the process inherited.
  return cpus + 64;
}

absl::Status EnsureOpenFiles(uint64_t needed) {
  return EnsureOpenFiles(needed, HostOpenFileLimit());
}

absl::Status EnsureOpenFiles(uint64_t needed, const OpenFileLimitAccess& access) {
  rlimit limit = {};
  if (const int error = access.get(limit); error != 0) {
    return ErrnoStatus(error, "getrlimit(RLIMIT_NOFILE)");
  }
  if (limit.rlim_cur >= needed) return absl::OkStatus();
  if (limit.rlim_max < needed) {
    return absl::ResourceExhaustedError(
        absl::StrCat("hard limit of open files (RLIMIT_NOFILE) is ", limit.rlim_max, ", but ",
                     needed, " are needed (one per vCPU); raise it (ulimit -Hn ", needed,
                     " as root, or LimitNOFILE= of the service) or use fewer --cpus"));
  }
  limit.rlim_cur = needed;
  if (const int error = access.set(limit); error != 0) {
    return ErrnoStatus(error, absl::StrCat("setrlimit(RLIMIT_NOFILE, ", needed, ")"),
                       absl::StrCat("run: ulimit -n ", needed));
  }
  return absl::OkStatus();
}

void PregrowFileTable(uint64_t count) {
  // The table grows to hold the descriptor asked for and keeps its size when that is closed.
  const int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, static_cast<int>(count) - 1);
  if (fd >= 0) close(fd);
}

std::vector<ThreadLimit> ReadThreadLimits(const std::string& root) {
  std::vector<ThreadLimit> limits;
  rlimit nproc = {};
  // The kernel does not hold root to RLIMIT_NPROC (kernel/fork.c, copy_process). How many threads
  // the user has elsewhere cannot be told cheaply, so in_use stays 0 and the check is a lower
  // bound.
  if (geteuid() != 0 && getrlimit(RLIMIT_NPROC, &nproc) == 0 && nproc.rlim_cur != RLIM_INFINITY) {
    limits.push_back(
        {"RLIMIT_NPROC", nproc.rlim_cur, 0, "raise it: ulimit -u, or LimitNPROC= of the service"});
  }
  if (const auto max = ReadNumber(root + "/proc/sys/kernel/threads-max")) {
    limits.push_back({"kernel.threads-max", *max,
                      ReadThreadCount(root + "/proc/loadavg").value_or(0),
                      "raise it: sysctl kernel.threads-max=N"});
  }
  AddCgroups(root, limits);
  return limits;
}

absl::Status CheckThreads(uint64_t needed, const std::vector<ThreadLimit>& limits) {
  for (const ThreadLimit& limit : limits) {
    const uint64_t free = limit.limit - std::min(limit.limit, limit.in_use);
    if (free >= needed) continue;
    return absl::ResourceExhaustedError(absl::StrCat(
        limit.name, " is ", limit.limit, ", ", limit.in_use, " in use, but ", needed,
        " more threads are needed (one per vCPU); ", limit.remedy, ", or use fewer --cpus"));
  }
  return absl::OkStatus();
}

absl::Status EnsureThreads(uint64_t needed) { return CheckThreads(needed, ReadThreadLimits()); }

}  // namespace sipi
