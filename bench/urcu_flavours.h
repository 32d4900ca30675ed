// The flavours of liburcu that are measured, each in a file of its own: their headers do not mix.
#pragma once

#include "bench/rcu_peer.h"

namespace sipi::bench {

RcuPeer MembPeer();
RcuPeer QsbrPeer();
RcuPeer BpPeer();

}  // namespace sipi::bench
