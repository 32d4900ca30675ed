// The tree's shape: every CPU has its leaf, every node its parent, no node is empty or too full.
#include "guest/kernel/rcu/tree.h"

#include <gtest/gtest.h>

#include <vector>

namespace sipi::rcu {
namespace {

// Children per node of a level, counted one by one.
std::vector<uint32_t> ChildCounts(const Geometry& tree, uint32_t level, uint32_t cpus) {
  std::vector<uint32_t> counts(tree.nodes[level], 0);
  const uint32_t children = level + 1 == tree.levels ? cpus : tree.nodes[level + 1];
  for (uint32_t child = 0; child < children; ++child) {
    const uint32_t node = child / tree.spread[level];
    if (node >= counts.size()) return {};
    ++counts[node];
  }
  return counts;
}

void Check(uint32_t cpus, uint32_t fanout, uint32_t leaf) {
  SCOPED_TRACE(testing::Message() << cpus << " CPUs, fan-out " << fanout << ", leaf " << leaf);
  const Geometry tree = MakeGeometry(cpus, fanout, leaf);
  ASSERT_GE(tree.levels, 1u);
  ASSERT_LE(tree.levels, kMaxLevels);
  EXPECT_EQ(tree.nodes[0], 1u);
  uint32_t total = 0;
  for (uint32_t level = 0; level < tree.levels; ++level) {
    total += tree.nodes[level];
    const uint32_t most = level + 1 == tree.levels ? leaf : fanout;
    const auto counts = ChildCounts(tree, level, cpus);
    ASSERT_EQ(counts.size(), tree.nodes[level]) << "level " << level;
    for (uint32_t count : counts) {
      ASSERT_GE(count, 1u) << "level " << level;
      ASSERT_LE(count, most) << "level " << level;
    }
  }
  EXPECT_EQ(tree.total, total);
}

TEST(Tree, EveryNodeHasChildrenAndNoneTooMany) {
  for (uint32_t fanout : {2u, 3u, 4u, 6u, 16u, 63u, 64u}) {
    for (uint32_t leaf : {2u, 3u, 6u, 16u, 64u}) {
      for (uint32_t cpus = 1; cpus <= 300; ++cpus) Check(cpus, fanout, leaf);
      for (uint32_t cpus : {400u, 960u, 1023u, 1024u, 1025u, 1920u, 4097u, 8191u, 8192u}) {
        Check(cpus, fanout, leaf);
      }
    }
  }
}

TEST(Tree, LevelsAsInLinux) {
  EXPECT_EQ(MakeGeometry(1, 64, 16).levels, 1u);
  EXPECT_EQ(MakeGeometry(16, 64, 16).levels, 1u);
  EXPECT_EQ(MakeGeometry(17, 64, 16).levels, 2u);
  EXPECT_EQ(MakeGeometry(1024, 64, 16).levels, 2u);
  EXPECT_EQ(MakeGeometry(1025, 64, 16).levels, 3u);
  EXPECT_EQ(MakeGeometry(1920, 64, 16).nodes[2], 120u);
  // TREE54 of rcuscale: fan-out 3, leaves of 2.
  EXPECT_EQ(MakeGeometry(54, 3, 2).levels, 4u);
}

TEST(Tree, FanoutOutOfRangeIsTakenAsTheNearest) {
  EXPECT_EQ(MakeGeometry(100, 0, 1).levels, MakeGeometry(100, 2, 2).levels);
  EXPECT_EQ(MakeGeometry(8192, 1000, 1000).nodes[1], MakeGeometry(8192, 64, 64).nodes[1]);
}

}  // namespace
}  // namespace sipi::rcu
