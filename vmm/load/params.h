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
  Gpa torture;  // abi::TorturePage; 0: none, as without services
  Gpa heap;     // the kernel's memory (guest/kernel/alloc.h); 0: none
  uint64_t heap_bytes = 0;
  Gpa end;                 // one past the last area
  uint64_t ram_bytes = 0;  // RAM that the guest needs from 0, a multiple of 2 MiB
};

// All that the layout depends on.
struct ArenaNeeds {
  uint32_t cpus = 1;  // at least 1
  // Trace records beyond those of a bring-up: on the boot CPU, and on each of the others.
  uint64_t boot_records = 0;
  uint64_t percpu_records = 0;
  uint64_t heap_bytes = 0;  // 0: a kernel without services, which also has no torture counters
};

// What a run of this configuration will need. Rings are cut where all of them together would get
// too large for a guest's RAM; what does not fit then counts as lost (guest/abi/trace.h), on
// simulated CPUs where even the spare records are used up.
ArenaNeeds NeedsOf(const RunConfig& config);

// How often a CPU may be started in such a run: once, and each time that it comes back. Bounded, as
// the host keeps a log of each; at least 1.
uint32_t StartupsPerCpu(const RunConfig& config);

// The guest maps its first 4 GiB, so all of it lies below the RAM's hole at 3 GiB: the ring sizes
// of NeedsOf see to it up to 4,096 CPUs.
ArenaLayout PlanArena(const ArenaNeeds& needs);

// The same for the simulator, whose CPUs have stacks of their own: smaller blocks, an odd number of
// cache lines apart, so that they do not meet in the same sets of the host's caches.
ArenaLayout PlanSimulatedArena(const ArenaNeeds& needs);

// The abi::BootParams blob for `config`: CPU table, order, APIC ID hash table. `tsc_khz` is the
// guest's TSC frequency; it is handed over only if config.clock_known (otherwise the PM timer's
// port is).
std::vector<std::byte> BuildBootParams(const RunConfig& config, const ArenaLayout& arena,
                                       uint32_t tsc_khz);

}  // namespace sipi
