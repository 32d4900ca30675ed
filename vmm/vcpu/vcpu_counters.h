// What one vCPU's thread has done. Its own; summed up at the end of the run.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "vmm/irqchip/user_irqchip.h"

namespace sipi {

struct VcpuCounters {
  // By KVM's exit reason; what is beyond counts in the last.
  static constexpr uint32_t kReasons = 48;
  std::array<uint64_t, kReasons> exits = {};
  uint64_t interrupted_runs = 0;  // KVM_RUN ended by a kick
  uint64_t unhandled_io = 0;
  uint64_t unhandled_mmio = 0;
  uint64_t unhandled_msr = 0;
  uint64_t inits_taken = 0;
  uint64_t startups_taken = 0;
  uint64_t interrupts_injected = 0;
  uint64_t nmis_injected = 0;
  uint64_t timer_interrupts = 0;
  uint64_t blocked_sleeps = 0;  // waits for an interrupt or a SIPI that went to sleep
  uint64_t yields = 0;          // writes to the POST code port
  uint64_t imposed_sleeps = 0;
  uint64_t imposed_ns = 0;
  SendCounters sends;

  void CountExit(uint32_t reason) { ++exits[reason < kReasons ? reason : kReasons - 1]; }
  VcpuCounters& operator+=(const VcpuCounters& other);

  // Adds them to `counters` under the names of docs/formats.md ("exits", "exits.hlt", "ipis", ...);
  // exit reasons that did not occur are left out.
  void AddTo(std::map<std::string, uint64_t>& counters) const;
};

}  // namespace sipi
