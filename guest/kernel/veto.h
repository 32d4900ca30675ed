// Why parallel bring-up may be refused. History: the parallel series' x86_cpuinit.parallel_bringup
// and its AMD opt-out.
#pragma once

#include "guest/kernel/kernel.h"

namespace sipi {

// The user's forced veto first, then what the boot CPU can see: IDs taken from CPUID where the leaf
// is missing, and a guest whose memory or registers are encrypted (an early CPUID or APIC access
// would fault there).
inline abi::Veto FindVeto(Kernel& kernel) {
  if (kernel.knobs().veto != abi::Veto::kNone) return kernel.knobs().veto;
  if (kernel.knobs().ap_id_source == abi::ApIdSource::kCpuidB && !platform::HasTopologyLeaf()) {
    return abi::Veto::kNoLeafB;
  }
  if (platform::EncryptedGuest()) return abi::Veto::kEncrypted;
  return abi::Veto::kNone;
}

}  // namespace sipi
