// A guest that prints: case V6 with a real vCPU.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "tests/machine/machine_fixture.h"
#include "vmm/base/unique_fd.h"

namespace sipi {
namespace {

class SerialTest : public MachineTest {
 protected:
  // The guest prints `blocks` times the 4096 bytes at 64 KiB, which repeat a line of 64 bytes.
  void MakePrinter(int serial_fd, uint32_t blocks) {
    MachineOptions options = Options(1);
    options.serial_fd = serial_fd;
    options.serial_buffer_bytes = 4096;
    Make(std::move(options), payload::boot_print());
    for (uint32_t i = 0; i < 4096; ++i) {
      *machine_->memory().At<char>(Gpa(0x10000 + i)).value() = Expected(i);
    }
    Word(kRoundsGpa) = blocks;
  }
  static char Expected(size_t i) { return i % 64 == 63 ? '\n' : static_cast<char>('0' + i % 64); }
};

TEST_F(SerialTest, AFileGetsEveryByteOfAStringWriteInOrder) {
  char name[] = "/tmp/sipi-serial-XXXXXX";
  const UniqueFd file(mkstemp(name));
  unlink(name);
  MakePrinter(file.get(), 64);
  ASSERT_EQ(Run(60'000).kind, EndKind::kGuestExit) << Doings();
  std::string text(64 * 4096 + 1, '\0');
  ASSERT_EQ(pread(file.get(), text.data(), text.size(), 0), 64 * 4096);
  for (size_t i = 0; i < 64 * 4096; ++i) ASSERT_EQ(text[i], Expected(i)) << i;
  EXPECT_EQ(machine_->serial_summary().dropped_bytes, 0u);
}

TEST_F(SerialTest, AGuestWhoseReaderIsGoneRunsOn) {
  int fds[2];
  ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
  UniqueFd read_end(fds[0]);
  const UniqueFd write_end(fds[1]);
  read_end.Reset();
  MakePrinter(write_end.get(), 4);
  EXPECT_EQ(Run(60'000).kind, EndKind::kGuestExit) << Doings();
  EXPECT_EQ(machine_->serial_summary().dropped_bytes, 4 * 4096u);
}

TEST_F(SerialTest, AGuestWhoseReaderDoesNotReadRunsOn) {
  int fds[2];
  ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
  const UniqueFd read_end(fds[0]);
  const UniqueFd write_end(fds[1]);
  MakePrinter(write_end.get(), 24);  // 96 KiB: more than the pipe and the buffer hold
  EXPECT_EQ(Run(60'000).kind, EndKind::kGuestExit) << Doings();
  const OutputSummary& summary = machine_->serial_summary();
  EXPECT_EQ(summary.written_bytes + summary.dropped_bytes, 24 * 4096u);
  EXPECT_GT(summary.dropped_bytes, 0u);
}

TEST_F(SerialTest, AFullDeviceIsCountedAndTheGuestRunsOn) {
  const UniqueFd full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  MakePrinter(full.get(), 2);
  EXPECT_EQ(Run(60'000).kind, EndKind::kGuestExit) << Doings();
  EXPECT_EQ(machine_->serial_summary().dropped_bytes, 2 * 4096u);
}

}  // namespace
}  // namespace sipi
