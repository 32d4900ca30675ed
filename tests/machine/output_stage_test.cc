// Case V6 of the VMM cases, without a guest: readers that stop, go away, or have no room.
#include "vmm/device/output_stage.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "vmm/base/unique_fd.h"

namespace sipi {
namespace {

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

struct Pipe {
  Pipe() {
    int fds[2];
    EXPECT_EQ(pipe2(fds, O_CLOEXEC), 0);
    read_end.Reset(fds[0]);
    write_end.Reset(fds[1]);
  }
  UniqueFd read_end;
  UniqueFd write_end;
};

std::string ReadAll(int fd) {
  std::string text;
  char buffer[65536];
  ssize_t count;
  while ((count = read(fd, buffer, sizeof buffer)) > 0) {
    text.append(buffer, static_cast<size_t>(count));
  }
  return text;
}

UniqueFd TemporaryFile() {
  char name[] = "/tmp/sipi-output-XXXXXX";
  UniqueFd fd(mkstemp(name));
  unlink(name);
  return fd;
}

TEST(OutputStage, AFileGetsEveryByteInOrder) {
  const UniqueFd file = TemporaryFile();
  const auto stage = MakeOutputStage(file.get());
  std::string expected;
  for (int i = 0; i < 2000; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    expected += line;
    stage->Write(Bytes(line));
  }
  const OutputSummary summary = stage->Finish(1000);
  EXPECT_EQ(summary.written_bytes, expected.size());
  EXPECT_EQ(summary.dropped_bytes, 0u);
  lseek(file.get(), 0, SEEK_SET);
  EXPECT_EQ(ReadAll(file.get()), expected);
}

TEST(OutputStage, AReaderThatKeepsUpGetsEveryByteInOrder) {
  Pipe pipe;
  std::string got;
  std::thread reader([&] { got = ReadAll(pipe.read_end.get()); });
  std::string expected;
  const auto stage = MakeOutputStage(pipe.write_end.get());
  for (int i = 0; i < 50'000; ++i) {
    const std::string line = std::to_string(i) + "\n";
    expected += line;
    stage->Write(Bytes(line));
  }
  const OutputSummary summary = stage->Finish(5000);
  pipe.write_end.Reset();
  reader.join();
  EXPECT_EQ(summary.dropped_bytes, 0u);
  EXPECT_EQ(got, expected);
}

TEST(OutputStage, AReaderThatStopsReadingBlocksNobodyAndWhatIsDroppedIsCounted) {
  Pipe pipe;
  const auto stage = MakeOutputStage(pipe.write_end.get(), 64 * 1024);
  const std::string block(10'000, 'x');
  for (int i = 0; i < 1000; ++i) stage->Write(Bytes(block));
  // A stuck reader must not hold the end; meson would end the test before an hour is over.
  const OutputSummary summary = stage->Finish(3'600'000);
  EXPECT_EQ(summary.written_bytes + summary.dropped_bytes, 10'000'000u);
  EXPECT_GT(summary.dropped_bytes, 9'000'000u);
  EXPECT_EQ(DescribeDropped(summary), "serial output: " + std::to_string(summary.dropped_bytes) +
                                          " bytes dropped (the reader did not keep up)");
}

TEST(OutputStage, AReaderThatGoesAwayDoesNotKillTheProcess) {
  Pipe pipe;
  const auto stage = MakeOutputStage(pipe.write_end.get());
  stage->Write(Bytes("first line\n"));
  char byte;
  ASSERT_EQ(read(pipe.read_end.get(), &byte, 1), 1);
  pipe.read_end.Reset();
  for (int i = 0; i < 100; ++i) stage->Write(Bytes(std::string(1000, 'y')));
  const OutputSummary summary = stage->Finish(1000);
  EXPECT_EQ(summary.error, EPIPE);
  EXPECT_EQ(summary.written_bytes + summary.dropped_bytes, 100'011u);
  EXPECT_GE(summary.dropped_bytes, 34'000u) << "no more than a pipe's buffer can have been written";
}

TEST(OutputStage, APipeWithoutReaderFromTheStartDropsEverything) {
  Pipe pipe;
  pipe.read_end.Reset();
  const auto stage = MakeOutputStage(pipe.write_end.get());
  stage->Write(Bytes("nobody"));
  const OutputSummary summary = stage->Finish(1000);
  EXPECT_EQ(summary.error, EPIPE);
  EXPECT_EQ(summary.dropped_bytes, 6u);
}

TEST(OutputStage, ASocketWhosePeerIsGoneDropsAndCounts) {
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  UniqueFd ours(fds[0]);
  UniqueFd peer(fds[1]);
  peer.Reset();
  const auto stage = MakeOutputStage(ours.get());
  stage->Write(Bytes("nobody"));
  const OutputSummary summary = stage->Finish(1000);
  EXPECT_EQ(summary.error, EPIPE);
  EXPECT_EQ(summary.dropped_bytes, 6u);
}

TEST(OutputStage, AClosedDescriptorDropsAndCounts) {
  UniqueFd file = TemporaryFile();
  const int number = file.get();
  file.Reset();
  const auto stage = MakeOutputStage(number);
  stage->Write(Bytes("lost"));
  const OutputSummary summary = stage->Finish(1000);
  EXPECT_EQ(summary.error, EBADF);
  EXPECT_EQ(summary.dropped_bytes, 4u);
}

TEST(OutputStage, AFullDeviceDropsAndCounts) {
  const UniqueFd full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(full.valid());
  const auto stage = MakeOutputStage(full.get());
  for (int i = 0; i < 10; ++i) stage->Write(Bytes("0123456789"));
  const OutputSummary summary = stage->Finish(1000);
  EXPECT_EQ(summary.error, ENOSPC);
  EXPECT_EQ(summary.dropped_bytes, 100u);
  EXPECT_EQ(DescribeDropped(summary), "serial output: 100 bytes dropped (No space left on device)");
}

TEST(OutputStage, NowhereSwallowsEverythingWithoutComplaint) {
  const auto stage = MakeOutputStage(-1);
  stage->Write(Bytes("quiet"));
  EXPECT_EQ(DescribeDropped(stage->Finish(0)), "");
}

TEST(OutputStage, ManyWritersAtOnceLoseNothingAndKeepTheirLinesWhole) {
  const UniqueFd file = TemporaryFile();
  const auto stage = MakeOutputStage(file.get());
  constexpr int kThreads = 64;
  constexpr int kLines = 50;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kLines; ++i) {
        stage->Write(Bytes("CPU " + std::to_string(100 + t) + "\n"));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(stage->Finish(1000).dropped_bytes, 0u);
  lseek(file.get(), 0, SEEK_SET);
  const std::string text = ReadAll(file.get());
  ASSERT_EQ(text.size(), size_t{kThreads} * kLines * 8);
  for (size_t at = 0; at < text.size(); at += 8) {
    EXPECT_EQ(text.substr(at, 5), "CPU 1");
    EXPECT_EQ(text[at + 7], '\n');
  }
}

TEST(OutputStage, LeavesTheSharedDescriptorBlocking) {
  Pipe pipe;
  const auto stage = MakeOutputStage(pipe.write_end.get());
  stage->Write(Bytes("x"));
  stage->Finish(1000);
  EXPECT_EQ(fcntl(pipe.write_end.get(), F_GETFL) & O_NONBLOCK, 0);
}

}  // namespace
}  // namespace sipi
