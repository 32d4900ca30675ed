// What things cost on the simulated machine, in nanoseconds of virtual time. Each is a latency that
// can be looked up or measured; docs/simulator.md says where the defaults come from.
#pragma once

#include <array>
#include <cstdint>

#include "guest/abi/layout.h"

namespace sipi::sim {

// A latency: median, and the half-width of its uniform jitter.
struct Latency {
  uint64_t ns = 0;
  uint64_t jitter_ns = 0;
};

struct Costs {
  // Memory. A line costs one of the two transfers whenever another CPU had it last, and all that
  // want the same line queue for it.
  uint32_t cached_ns = 1;         // load of a line that this CPU has
  uint32_t atomic_ns = 8;         // locked read-modify-write of such a line
  uint32_t line_ns = 60;          // from another cache of the package, or from memory
  uint32_t remote_line_ns = 130;  // from another package

  // Instructions.
  uint32_t clock_ns = 10;       // RDTSC
  uint32_t trace_ns = 20;       // one record: RDTSC, XADD, four stores
  uint32_t msr_ns = 60;         // an x2APIC register, IA32_TSC_DEADLINE
  uint32_t mmio_ns = 150;       // an xAPIC register
  uint32_t port_ns = 1000;      // IN or OUT to the chipset: PM timer, POST code
  uint32_t interrupt_ns = 400;  // through the gate and back with IRET
  uint32_t wake_ns = 2000;      // out of HLT

  // INIT, SIPI and IPIs: from the ICR write to the target. What a CPU then takes to start is the
  // profile's (Options::charges).
  Latency ipi = {1000, 0};

  // The real-mode trampoline: from the first instruction to the lock, and under it.
  uint32_t trampoline_entry_ns = 500;
  uint32_t trampoline_locked_ns = 4000;

  // Only with Options::host_cores: how long a vCPU keeps a core that others want, and what it takes
  // to change over.
  uint32_t quantum_ns = 3'000'000;
  uint32_t core_switch_ns = 3000;
};

// Latencies by abi::Charge; kNone's is not used.
using Charges = std::array<Latency, 8>;
static_assert(static_cast<uint32_t>(abi::Charge::kSchedDomains) == 7);

}  // namespace sipi::sim
