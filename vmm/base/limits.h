// The host's limits on what a run needs: open files and threads. Checked before any VM is made, so
// that a run that cannot work fails with one line instead of half-started.
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace sipi {

// Access to RLIMIT_NOFILE; replaced by tests. Both return 0 or errno.
struct OpenFileLimitAccess {
  std::function<int(rlimit&)> get;
  std::function<int(const rlimit&)> set;
};
OpenFileLimitAccess HostOpenFileLimit();

// Number of descriptors that a VM with `cpus` vCPUs has open at once, the process's own included.
uint64_t OpenFilesForVcpus(uint64_t cpus);

// Raises the soft limit of open files (RLIMIT_NOFILE) to at least `needed`. Error
// (ResourceExhausted): the hard limit is lower; names limit, needed, actual and remedy.
absl::Status EnsureOpenFiles(uint64_t needed);
absl::Status EnsureOpenFiles(uint64_t needed, const OpenFileLimitAccess& access);

// Makes the kernel's table of descriptors large enough for `count` of them. In a process with more
// than one thread each doubling of that table waits for an RCU grace period inside open(2) and
// KVM_CREATE_VCPU; called while there is one thread, it costs microseconds. No error: it is only an
// optimisation, and without it things work.
void PregrowFileTable(uint64_t count);

// One limit on threads: how many more may be started.
struct ThreadLimit {
  std::string name;     // "RLIMIT_NPROC", "kernel.threads-max", "cgroup pids.max (/sys/fs/...)"
  uint64_t limit = 0;   // as set
  uint64_t in_use = 0;  // 0 where it cannot be told
  std::string remedy;   // what to run or write
};

// The limits that hold for this process: RLIMIT_NPROC (unless privileged), threads-max, and
// pids.max of each cgroup above it. `root` is put before /proc and /sys (tests).
std::vector<ThreadLimit> ReadThreadLimits(const std::string& root = "");

// Error (ResourceExhausted) naming the first limit that does not let `needed` more threads start.
absl::Status CheckThreads(uint64_t needed, const std::vector<ThreadLimit>& limits);

// CheckThreads against the limits of this host.
absl::Status EnsureThreads(uint64_t needed);

}  // namespace sipi
