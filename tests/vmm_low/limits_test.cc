#include "vmm/base/limits.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "vmm/base/errno_status.h"

namespace sipi {
namespace {

// A pretended RLIMIT_NOFILE.
struct FakeOpenFiles {
  rlimit limit;
  int set_error = 0;
  int sets = 0;
  OpenFileLimitAccess Access() {
    return {.get =
                [this](rlimit& out) {
                  out = limit;
                  return 0;
                },
            .set =
                [this](const rlimit& in) {
                  ++sets;
                  if (set_error == 0) limit = in;
                  return set_error;
                }};
  }
};

bool Contains(const absl::Status& status, const std::string& text) {
  return std::string(status.message()).find(text) != std::string::npos;
}

TEST(OpenFiles, SoftLimitOf1024IsRaisedFor1024Vcpus) {
  FakeOpenFiles files{.limit = {.rlim_cur = 1024, .rlim_max = 1048576}};
  const uint64_t needed = OpenFilesForVcpus(1024);
  EXPECT_GT(needed, 1024u);
  EXPECT_TRUE(EnsureOpenFiles(needed, files.Access()).ok());
  EXPECT_EQ(files.limit.rlim_cur, needed);
  EXPECT_EQ(files.limit.rlim_max, 1048576u);
}

TEST(OpenFiles, LimitThatIsHighEnoughIsLeftAlone) {
  FakeOpenFiles files{.limit = {.rlim_cur = 4096, .rlim_max = 4096}};
  EXPECT_TRUE(EnsureOpenFiles(1088, files.Access()).ok());
  EXPECT_EQ(files.sets, 0);
}

TEST(OpenFiles, HardLimitOf900IsAnErrorWithLimitNeededActualAndRemedy) {
  FakeOpenFiles files{.limit = {.rlim_cur = 900, .rlim_max = 900}};
  const absl::Status status = EnsureOpenFiles(1088, files.Access());
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(Contains(status, "RLIMIT_NOFILE")) << status;
  EXPECT_TRUE(Contains(status, "900")) << status;
  EXPECT_TRUE(Contains(status, "1088")) << status;
  EXPECT_TRUE(Contains(status, "ulimit -Hn 1088")) << status;
  EXPECT_EQ(files.sets, 0);
}

TEST(OpenFiles, FailureToRaiseIsReported) {
  FakeOpenFiles files{.limit = {.rlim_cur = 10, .rlim_max = 4096}, .set_error = EPERM};
  EXPECT_TRUE(Contains(EnsureOpenFiles(1088, files.Access()), "setrlimit(RLIMIT_NOFILE, 1088)"));
}

TEST(Threads, EveryLimitThatLeavesRoomIsFine) {
  EXPECT_TRUE(
      CheckThreads(1024, {{"RLIMIT_NPROC", 1024, 0, ""}, {"pids.max", 2048, 1024, ""}}).ok());
}

TEST(Threads, LimitThatIsTooLowIsNamedWithNeededActualAndRemedy) {
  const absl::Status status =
      CheckThreads(1024, {{"kernel.threads-max", 100000, 500, ""},
                          {"cgroup pids.max (/x)", 1100, 100, "echo max > /x/pids.max"}});
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(Contains(status, "cgroup pids.max (/x) is 1100, 100 in use")) << status;
  EXPECT_TRUE(Contains(status, "1024")) << status;
  EXPECT_TRUE(Contains(status, "echo max > /x/pids.max")) << status;
}

TEST(Threads, MoreInUseThanAllowedLeavesNone) {
  EXPECT_FALSE(CheckThreads(1, {{"pids.max", 10, 20, ""}}).ok());
}

// A pretended /proc and /sys.
class ThreadLimitFiles : public testing::Test {
 protected:
  ThreadLimitFiles() {
    char pattern[] = "/tmp/sipi-limits-XXXXXX";
    root_ = mkdtemp(pattern);
  }
  ~ThreadLimitFiles() override { std::filesystem::remove_all(root_); }
  void Write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  // The limit whose name holds `text`, or null.
  static const ThreadLimit* Named(const std::vector<ThreadLimit>& limits, const std::string& text) {
    for (const ThreadLimit& limit : limits) {
      if (limit.name.find(text) != std::string::npos) return &limit;
    }
    return nullptr;
  }
  std::string root_;
};

TEST_F(ThreadLimitFiles, ThreadsMaxComesWithTheThreadsThatAreThere) {
  Write("/proc/sys/kernel/threads-max", "1234\n");
  Write("/proc/loadavg", "0.10 0.20 0.30 2/345 6789\n");
  const auto limits = ReadThreadLimits(root_);
  const ThreadLimit* limit = Named(limits, "threads-max");
  ASSERT_NE(limit, nullptr);
  EXPECT_EQ(limit->limit, 1234u);
  EXPECT_EQ(limit->in_use, 345u);
}

TEST_F(ThreadLimitFiles, PidsMaxOfEveryCgroupAboveCounts) {
  Write("/proc/self/cgroup", "0::/a.slice/b.scope\n");
  Write("/sys/fs/cgroup/a.slice/pids.max", "200\n");
  Write("/sys/fs/cgroup/a.slice/pids.current", "150\n");
  Write("/sys/fs/cgroup/a.slice/b.scope/pids.max", "max\n");
  const auto limits = ReadThreadLimits(root_);
  const ThreadLimit* limit = Named(limits, "a.slice/pids.max");
  ASSERT_NE(limit, nullptr);
  EXPECT_EQ(limit->limit, 200u);
  EXPECT_EQ(limit->in_use, 150u);
  EXPECT_EQ(Named(limits, "b.scope"), nullptr);
}

TEST_F(ThreadLimitFiles, VersionOnePidsControllerCounts) {
  Write("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:pids:/docker/abc\n");
  Write("/sys/fs/cgroup/pids/docker/abc/pids.max", "64");
  const auto limits = ReadThreadLimits(root_);
  const ThreadLimit* limit = Named(limits, "docker/abc/pids.max");
  ASSERT_NE(limit, nullptr);
  EXPECT_EQ(limit->limit, 64u);
}

TEST_F(ThreadLimitFiles, RootCgroupOfAContainerCounts) {
  Write("/proc/self/cgroup", "0::/\n");
  Write("/sys/fs/cgroup/pids.max", "77");
  const auto limits = ReadThreadLimits(root_);
  const ThreadLimit* limit = Named(limits, "/sys/fs/cgroup/pids.max");
  ASSERT_NE(limit, nullptr);
  EXPECT_EQ(limit->limit, 77u);
}

TEST_F(ThreadLimitFiles, RubbishIsNoLimit) {
  Write("/proc/sys/kernel/threads-max", "many\n");
  Write("/proc/self/cgroup", "no colon\n0::\n");
  EXPECT_EQ(Named(ReadThreadLimits(root_), "threads-max"), nullptr);
}

TEST(ErrnoStatus, NamesOperationErrorAndRemedy) {
  const absl::Status status = ErrnoStatus(ENOENT, "open /x", "make it");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "open /x: No such file or directory (ENOENT); make it");
  EXPECT_EQ(ErrnoStatus(EINVAL, "y").message(), "y: Invalid argument (EINVAL)");
}

}  // namespace
}  // namespace sipi
