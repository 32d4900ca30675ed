// Where the guest's shared areas lie, and the boot parameters' blob that tells it (guest/abi).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "apic/regs/types.h"
#include "vmm/machine/run_config.h"

namespace sipi {

// Guest-physical layout of the areas that guest and VMM share, from abi::kArenaGpa up. The guest
// initialises what is in them; RAM comes zeroed.
struct ArenaLayout {
  Gpa result;     // abi::ResultPage
  Gpa slots;      // abi::CpuSlot[cpus]
  Gpa boot_ring;  // abi::TraceRecord[boot_ring_records], the boot CPU's
  uint32_t boot_ring_records = 0;
  Gpa percpu;  // cpus blocks: header, trace ring, stack (top at the block's end)
  uint32_t percpu_stride_bytes = 0;
  uint32_t percpu_ring_records = 0;
  Gpa end;                 // one past the last block
  uint64_t ram_bytes = 0;  // RAM that the guest needs from 0, a multiple of 2 MiB
};

// Precondition: cpus is at least 1.
ArenaLayout PlanArena(uint32_t cpus);

// The same for the simulator, whose CPUs have stacks of their own: smaller blocks, an odd number of
// cache lines apart, so that they do not meet in the same sets of the host's caches.
ArenaLayout PlanSimulatedArena(uint32_t cpus);

// The abi::BootParams blob for `config`: CPU table, order, APIC ID hash table. `tsc_khz` is the
// guest's TSC frequency; it is handed over only if config.clock_known (otherwise the PM timer's
// port is).
std::vector<std::byte> BuildBootParams(const RunConfig& config, const ArenaLayout& arena,
                                       uint32_t tsc_khz);

}  // namespace sipi
