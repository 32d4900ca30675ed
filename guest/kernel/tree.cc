#include "guest/kernel/tree.h"

#include "guest/kernel/handshake.h"
#include "guest/kernel/kick.h"
#include "guest/sequence/driver.h"

namespace sipi {
namespace {

// CpuSlot::tree_kick. Its waker may be late, and then not be the only one who wants to kick: one of
// them gets the claim, and no CPU is sent a second INIT, which would stop it if it has come alive.
enum TreeKick : uint32_t { kNobody = 0, kClaimed = 1, kSent = 2 };

platform::AtomicRef<uint32_t> ClaimOf(Kernel& kernel, CpuNumber cpu) {
  return platform::AtomicRef<uint32_t>(kernel.slot(cpu).tree_kick);
}

// False if another CPU was first.
bool KickFirst(PerCpu& self, CpuNumber cpu) {
  const platform::AtomicRef<uint32_t> claim = ClaimOf(*self.kernel, cpu);
  uint32_t expected = kNobody;
  if (!claim.CompareExchange(expected, kClaimed, std::memory_order_seq_cst)) return false;
  KickOps(self).Kick(cpu);
  claim.Store(kSent, std::memory_order_release);
  return true;
}

}  // namespace

void PlantTree(Kernel& kernel) {
  kernel.tree = true;
  for (uint32_t i = 0; i < kernel.params->order_count; ++i) {
    kernel.slot(CpuNumber(kernel.order[i])).tree_rank = i + 1;
  }
}

void KickTreeChildren(PerCpu& self) {
  Kernel& kernel = *self.kernel;
  sequence::ForEachTreeChild(self.slot->tree_rank, kernel.params->order_count + 1,
                             [&](uint32_t rank) {
                               const CpuNumber child(kernel.order[rank - 1]);
                               if (kernel.slot(child).error == 0) KickFirst(self, child);
                             });
}

void KickTreeOrphans(PerCpu& self) {
  Kernel& kernel = *self.kernel;
  for (uint32_t i = 0; i < kernel.params->order_count; ++i) {
    const CpuNumber cpu(kernel.order[i]);
    const bool missing =
        kernel.slot(cpu).error == 0 && SyncStateOf(kernel, cpu) == abi::SyncState::kKicked;
    if (!missing || KickFirst(self, cpu)) continue;
    if (!TreeKickUnderWay(kernel, cpu)) KickOps(self).Remind(cpu);
  }
}

bool TreeKickUnderWay(Kernel& kernel, CpuNumber cpu) {
  return ClaimOf(kernel, cpu).Load(std::memory_order_acquire) == kClaimed;
}

}  // namespace sipi
