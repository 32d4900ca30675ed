// What the command does to a terminal, to signals and to the host's facts.
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/base/unique_fd.h"
#include "vmm/cli/host_info.h"
#include "vmm/cli/progress.h"
#include "vmm/cli/serial_output.h"

namespace sipi {
namespace {

struct Terminal {
  UniqueFd master;
  UniqueFd slave;
};

// Invalid descriptors where the host has no pseudo-terminals (a chroot without /dev/pts).
Terminal OpenTerminal(unsigned short columns) {
  int master = -1;
  int slave = -1;
  winsize size = {};
  size.ws_row = 24;
  size.ws_col = columns;
  if (openpty(&master, &slave, nullptr, nullptr, &size) != 0) return {};
  return {UniqueFd(master), UniqueFd(slave)};
}

std::string ReadSoFar(int fd) {
  std::string text;
  pollfd ready = {fd, POLLIN, 0};
  while (poll(&ready, 1, 0) == 1 && (ready.revents & POLLIN) != 0) {
    char buffer[4096];
    const ssize_t count = read(fd, buffer, sizeof(buffer));
    if (count <= 0) break;
    text.append(buffer, static_cast<size_t>(count));
  }
  return text;
}

TEST(ProgressLine, RedrawsInPlaceAndClearsItself) {
  const Terminal terminal = OpenTerminal(20);
  if (!terminal.master.valid()) GTEST_SKIP() << "no pseudo-terminals here (/dev/pts)";
  {
    ProgressLine progress(terminal.slave.get(), true);
    progress.Show("[1/9] serial");
    progress.Show("a line that is longer than the terminal is wide");
  }
  EXPECT_EQ(ReadSoFar(terminal.master.get()),
            "\r[1/9] serial\033[K\ra line that is long\033[K\r\033[K");
}

TEST(ProgressLine, IsSilentWithoutATerminal) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  ProgressLine(writer.get(), true).Show("[1/9] serial");
  writer.Reset();
  EXPECT_EQ(ReadSoFar(reader.get()), "");
}

TEST(ProgressLine, IsSilentIfNotWanted) {
  const Terminal terminal = OpenTerminal(80);
  if (!terminal.master.valid()) GTEST_SKIP() << "no pseudo-terminals here (/dev/pts)";
  ProgressLine(terminal.slave.get(), false).Show("[1/9] serial");
  EXPECT_EQ(ReadSoFar(terminal.master.get()), "");
}

TEST(SerialOutput, NoneIsNowhereAndErrorsNameTheFlag) {
  EXPECT_FALSE(OpenSerial("none", "-").value().fd.valid());
  EXPECT_FALSE(OpenSerial("", "none").value().fd.valid());
  EXPECT_TRUE(OpenSerial("-", "none").value().fd.valid());
  const absl::Status status = OpenSerial("/no/such/folder/file", "-").status();
  EXPECT_NE(std::string(status.message()).find("--serial: cannot open /no/such/folder/file"),
            std::string::npos);
}

TEST(HostInfo, FindsTheModulesThatServeKvm) {
  const std::string root = testing::TempDir() + "host_info_root";
  for (const char* folder : {"", "/sys", "/sys/module", "/sys/module/kvm", "/sys/module/kvm_intel",
                             "/sys/module/virtio_net"}) {
    mkdir((root + folder).c_str(), 0777);
  }
  EXPECT_EQ(KvmModules(root), std::vector<std::string>{"kvm_intel"});
  EXPECT_EQ(KvmModules("/no/such/root"), std::vector<std::string>{});
  EXPECT_EQ(ReadHostInfo(root).kvm_module, "kvm_intel");
}

TEST(HostInfo, KnowsThisHost) {
  const HostInfo host = ReadHostInfo();
  EXPECT_GE(host.cores, 1u);
  EXPECT_FALSE(host.kernel.empty());
  EXPECT_FALSE(host.cpu.empty());
  EXPECT_EQ(CpuVendor().size(), 12u);
}

}  // namespace
}  // namespace sipi
