// liburcu-dev was not found: the guest's RCU has no peers here.
#include "bench/rcu_peer.h"

namespace sipi::bench {

std::span<const RcuPeer> RcuPeers() { return {}; }

}  // namespace sipi::bench
