#include "vmm/cli/cpu_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <numeric>

namespace sipi {
namespace {

using Order = std::vector<uint32_t>;

std::string FileWith(const std::string& text) {
  std::string path = testing::TempDir() + "cpu_order_test.txt";
  std::ofstream(path) << text;
  return path;
}

TEST(CpuOrder, IdAndReverseLeaveOutTheBootCpu) {
  EXPECT_EQ(MakeCpuOrder("id", FlatTopology(5), 1).value(), (Order{1, 2, 3, 4}));
  EXPECT_EQ(MakeCpuOrder("reverse", FlatTopology(5), 1).value(), (Order{4, 3, 2, 1}));
  EXPECT_EQ(MakeCpuOrder("id", FlatTopology(1), 1).value(), Order{});
}

TEST(CpuOrder, SiblingsLastTakesEveryCoresFirstThreadFirst) {
  const Topology topology = ParseTopology("sockets=1,cores=4,threads=2", 8).value();
  EXPECT_EQ(MakeCpuOrder("siblings-last", topology, 1).value(), (Order{2, 4, 6, 1, 3, 5, 7}));
}

TEST(CpuOrder, NodeByNode) {
  Topology topology = FlatTopology(6);
  for (uint32_t cpu = 0; cpu < 6; ++cpu) topology.places[cpu].node = cpu % 2;
  EXPECT_EQ(MakeCpuOrder("node", topology, 1).value(), (Order{2, 4, 1, 3, 5}));
}

TEST(CpuOrder, RandomDependsOnTheSeedAlone) {
  const Topology topology = FlatTopology(64);
  const Order first = MakeCpuOrder("random", topology, 7).value();
  EXPECT_EQ(first, MakeCpuOrder("random", topology, 7).value());
  EXPECT_NE(first, MakeCpuOrder("random", topology, 8).value());
  Order sorted = first;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, MakeCpuOrder("id", topology, 1).value());
}

TEST(CpuOrder, FileMayHaveCommentsAndCommas) {
  const std::string path = FileWith("# far ones first\n3, 1\n\n2 # last\n");
  EXPECT_EQ(MakeCpuOrder("file:" + path, FlatTopology(4), 1).value(), (Order{3, 1, 2}));
}

TEST(CpuOrder, FileErrorsNameTheLine) {
  const auto bad = [](const std::string& text) {
    const std::string path = FileWith(text);
    const absl::Status status = MakeCpuOrder("file:" + path, FlatTopology(4), 1).status();
    std::string message(status.message());
    message.replace(message.find(path), path.size(), "FILE");
    return message;
  };
  EXPECT_EQ(bad("1\n2 x\n"), "--order: FILE:2: 'x' is not a number; give one from 1 to 3");
  EXPECT_EQ(bad("1 2\n4\n"), "--order: FILE:2: '4' is too large; the limit is 3");
  EXPECT_EQ(bad("1 2\n1\n"), "--order: FILE:2: CPU 1 is named twice");
  EXPECT_EQ(bad("0 1 2 3\n"), "--order: FILE:1: '0' is too small; the least is 1");
  EXPECT_EQ(bad("1 3\n"),
            "--order: FILE names 2 of the 3 CPUs to bring up, CPU 2 is missing; name each once");
}

TEST(CpuOrder, NamesAMissingFileAndAnUnknownOrder) {
  const std::string missing(
      MakeCpuOrder("file:/no/such/file", FlatTopology(4), 1).status().message());
  EXPECT_EQ(missing,
            "--order: cannot open /no/such/file: No such file or directory (ENOENT); give the "
            "path of a list of CPU numbers");
  EXPECT_NE(std::string(MakeCpuOrder("nodes", FlatTopology(4), 1).status().message())
                .find("did you mean 'node'?"),
            std::string::npos);
}

}  // namespace
}  // namespace sipi
