// What vmm/timeline and vmm/report do between threads; meant for ThreadSanitizer builds too.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "vmm/base/write_all.h"
#include "vmm/report/file_writer.h"
#include "vmm/timeline/host_log.h"

namespace sipi {
namespace {

using abi::TraceEvent;

TEST(HostLog, ReaderOfAnotherThreadSeesAWholePrefix) {
  constexpr uint32_t kCount = 20'000;
  HostLog log(kCount);
  std::thread writer([&log] {
    for (uint32_t i = 0; i < kCount; ++i) log.Emit(TraceEvent::kScenario, 1, i);
  });
  size_t seen = 0;
  while (seen < kCount) {
    const auto records = log.records();
    ASSERT_GE(records.size(), seen);
    for (; seen < records.size(); ++seen) ASSERT_EQ(records[seen].value, seen);
  }
  writer.join();
  EXPECT_EQ(log.lost(), 0u);
}

TEST(FileWriter, WritesToAPipe) {
  std::string dir = testing::TempDir() + "/sipi_pipe_" + std::string(6, 'X');
  ASSERT_NE(mkdtemp(dir.data()), nullptr);
  const std::string pipe = dir + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  // Nobody reads it yet: refused, instead of waiting for a reader that may never come.
  EXPECT_FALSE(WriteResultFile(pipe, "early").ok());
  const int reading_end = open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reading_end, 0);
  std::ostringstream got;
  std::thread reader([&] { got << std::ifstream(pipe).rdbuf(); });
  const std::string content(200'000, 'x');  // more than a pipe holds
  EXPECT_TRUE(WriteResultFile(pipe, content).ok());
  close(reading_end);
  reader.join();
  EXPECT_EQ(got.str(), content);
  std::filesystem::remove_all(dir);
}

// O_NONBLOCK belongs to the open file: whoever shares it may have set it.
TEST(WriteAll, WaitsForTheReaderOfANonBlockingPipe) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  ASSERT_EQ(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
  const std::string content(1'000'000, 'x');  // more than a pipe holds
  std::string got;
  std::thread reader([&] {
    std::string buffer(4096, 0);
    for (ssize_t count = 0; (count = read(ends[0], buffer.data(), buffer.size())) > 0;) {
      got.append(buffer, 0, static_cast<size_t>(count));
    }
  });
  EXPECT_EQ(WriteAll(ends[1], content), 0);
  close(ends[1]);
  reader.join();
  close(ends[0]);
  EXPECT_EQ(got, content);
}

TEST(WriteAll, TellsWhatFailsForGood) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  EXPECT_EQ(WriteAll(full, "x"), ENOSPC);
  close(full);
  EXPECT_EQ(WriteAll(-1, "x"), EBADF);
}

}  // namespace
}  // namespace sipi
