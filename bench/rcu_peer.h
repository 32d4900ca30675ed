// Peers of the guest's RCU: liburcu's flavours, where liburcu-dev was found when this was built.
#pragma once

#include <cstdint>
#include <span>

#include "bench/read_loops.h"

namespace sipi::bench {

struct RcuPeer {
  const char* name;
  void (*enter)();  // the calling thread becomes a reader
  void (*leave)();
  uint64_t (*pairs)(uint64_t count, const Root& root);
  uint64_t (*look_ups)(uint64_t count, const HashTable& table);
  // `updaters` threads, one per CPU, each queue `count` callbacks that free what they are in, with
  // a worker per CPU. Seconds from the first until all have run.
  double (*call_rcu)(uint32_t updaters, uint64_t count);
};

std::span<const RcuPeer> RcuPeers();

}  // namespace sipi::bench
