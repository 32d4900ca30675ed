// The AP handshake: every transition goes through here and is checked against the table on the side
// that makes it.
#pragma once

#include "guest/abi/handshake.h"
#include "guest/kernel/kernel.h"

namespace sipi {

inline platform::AtomicRef<uint32_t> SyncWord(Kernel& kernel, CpuNumber cpu) {
  return platform::AtomicRef<uint32_t>(kernel.slot(cpu).sync_state);
}

inline abi::SyncState SyncStateOf(Kernel& kernel, CpuNumber cpu) {
  return static_cast<abi::SyncState>(SyncWord(kernel, cpu).Load(std::memory_order_acquire));
}

// from -> to, if the CPU is still in `from`; false if another side was first. Panics on a
// transition that the table does not have.
inline bool SyncTransition(Kernel& kernel, CpuNumber cpu, abi::SyncState from, abi::SyncState to) {
  SIPI_ASSERT(abi::SyncTransitionAllowed(from, to));
  uint32_t expected = static_cast<uint32_t>(from);
  return SyncWord(kernel, cpu)
      .CompareExchange(expected, static_cast<uint32_t>(to), std::memory_order_seq_cst);
}

}  // namespace sipi
