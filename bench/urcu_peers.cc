#include "bench/urcu_flavours.h"

namespace sipi::bench {

std::span<const RcuPeer> RcuPeers() {
  static const RcuPeer peers[] = {MembPeer(), QsbrPeer(), BpPeer()};
  return peers;
}

}  // namespace sipi::bench
