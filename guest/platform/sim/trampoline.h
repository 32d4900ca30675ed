// The AP's way from its first instruction to ApMain, which is assembler on metal
// (guest/platform/x86/trampoline.S) and a model here: a lock around the real-mode part, the ID from
// the APIC or CPUID, the look-up in the VMM's hash, the per-CPU area. The results are the same,
// faults included; the instructions are a cost.
//
// The lock is test-and-set, polled by all who wait. A model of each try would take more events than
// all the rest of a run, so it is computed: k CPUs that try every p ns queue for one line that
// serves one of them in t ns; above p/t of them all but p/t stand in the queue (a closed queue of k
// customers with think time p). The release must wait for those in front of it, and the CPU whose
// try comes next, any of them, gets the lock.
#pragma once

#include <cstdint>
#include <vector>

#include "guest/abi/boot_params.h"
#include "guest/platform/sim/cpu.h"

namespace sipi::sim {

class Trampoline {
 public:
  // PrepareStartup on the boot CPU: the page is ready, and the lock free.
  void Prepare(const abi::BootParams& params);

  // All the way, on the AP's fiber; never returns. A SIPI that comes before Prepare(), or with
  // another vector, starts at memory that holds no code: the machine ends with a fault.
  [[noreturn]] void Run(Cpu& cpu, Vector startup);

  // The lock's word and its waiters.
  bool locked() const { return locked_; }
  void Remove(Cpu& cpu);
  // With fewer cores than CPUs: the lock is free, and this CPU, which waits for it, got a core.
  bool MayTake(const Cpu& cpu) const { return !locked_ && cpu.wants_trampoline; }
  void Take(Cpu& cpu, uint64_t time_ns);

 private:
  void Acquire(Cpu& cpu);
  void Release(Cpu& cpu);
  // What it costs this CPU to fetch the lock's line from who had it last.
  uint64_t LineNs(const Cpu& cpu) const;
  // What one of the waiters' tries costs, as seen from the CPU that has the lock.
  uint64_t MeanLineNs(const Cpu& cpu) const;
  // Waiters whose try stands in the line's queue, where a try takes so long.
  uint64_t Queued(uint64_t port_ns, uint64_t line_ns) const;

  const abi::BootParams* params_ = nullptr;
  bool locked_ = false;
  uint32_t last_ = abi::kNoCpu;  // who had the lock's line last
  const Cpu* holder_ = nullptr;  // between lock and unlock
  std::vector<Cpu*> waiters_;
};

}  // namespace sipi::sim
