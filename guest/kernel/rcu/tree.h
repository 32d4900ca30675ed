// The shape of the tree: how many levels, and how many nodes each has. As in Linux the children are
// spread evenly over a level's nodes, so that no node is empty. Free of the platform, so that host
// tests can use it.
#pragma once

#include <cstdint>

namespace sipi::rcu {

inline constexpr uint32_t kMaxLevels = 14;  // 8,192 CPUs at a fan-out of 2
inline constexpr uint32_t kMinFanout = 2;
inline constexpr uint32_t kMaxFanout = 64;  // bits of a mask

// Level 0 is the root, levels - 1 the leaves.
struct Geometry {
  uint32_t levels = 0;
  uint32_t nodes[kMaxLevels] = {};   // of that level
  uint32_t spread[kMaxLevels] = {};  // children of one of its nodes; the last one may have fewer
  uint32_t total = 0;
};

constexpr uint32_t DivideUp(uint32_t a, uint32_t b) { return (a + b - 1) / b; }

constexpr uint32_t ClampFanout(uint32_t fanout) {
  return fanout < kMinFanout ? kMinFanout : fanout > kMaxFanout ? kMaxFanout : fanout;
}

// Of at least one CPU. Fan-outs outside 2..64 are taken as the nearest of these.
constexpr Geometry MakeGeometry(uint32_t cpus, uint32_t fanout, uint32_t fanout_leaf) {
  uint32_t upwards[kMaxLevels] = {};
  Geometry geometry;
  uint32_t count = DivideUp(cpus, ClampFanout(fanout_leaf));
  upwards[geometry.levels++] = count;
  while (count > 1) {
    count = DivideUp(count, ClampFanout(fanout));
    upwards[geometry.levels++] = count;
  }
  for (uint32_t i = 0; i < geometry.levels; ++i) {
    const uint32_t up = geometry.levels - 1 - i;
    geometry.nodes[i] = upwards[up];
    geometry.spread[i] = DivideUp(up == 0 ? cpus : upwards[up - 1], upwards[up]);
    geometry.total += upwards[up];
  }
  return geometry;
}

}  // namespace sipi::rcu
