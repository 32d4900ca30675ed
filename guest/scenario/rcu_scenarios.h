// The scenarios that measure and torture RCU. Each runs in the boot CPU's thread "init", with every
// CPU up, and returns when all threads that it made have ended.
#pragma once

#include "guest/kernel/kernel.h"

namespace sipi {

// rcuscale: writers that wait for grace periods, one after the other (rcu_scale.cc).
void RunRcuScale(Kernel& kernel);
// refscale: what a reader costs (ref_scale.cc).
void RunRefScale(Kernel& kernel);
// call_rcu workers, and threads that keep them busy (call_rcu.cc).
void RunCallRcu(Kernel& kernel);
// rcutorture (torture.h).
void RunTorture(Kernel& kernel);

}  // namespace sipi
