// One CPU's own data. The first bytes are the abi's header, so that tracing needs one base register
// only.
#pragma once

#include <cstdint>

#include "apic/regs/types.h"
#include "guest/abi/percpu.h"

namespace sipi {

struct Kernel;
struct Thread;
struct RunQueue;
struct CpuHotplug;
namespace rcu {
struct Data;
}

struct PerCpu {
  abi::PerCpuHeader header;
  Thread* current;  // one instruction from the base register; null: no scheduler
  Kernel* kernel;
  abi::CpuSlot* slot;
  CpuNumber cpu;
  uint32_t timer_fired;  // set by the timer interrupt
  uint32_t
      timer_mask_when_fired;   // what the timer interrupt writes to the LVT; 0: it leaves it alone
  uint64_t timer_armed_ticks;  // when the armed timer fires; 0: none is armed
  uint32_t need_resched;       // Resched (sched/thread.h); this CPU's own, interrupts included
  uint32_t irq_depth;          // interrupt handlers that run, with services
  // Null without KernelKnobs::services.
  RunQueue* run_queue;
  rcu::Data* rcu;
  CpuHotplug* hotplug;
};

// The trace ring begins here in a per-CPU block.
inline constexpr uint64_t kPerCpuRingOffset = 128;
static_assert(sizeof(PerCpu) <= kPerCpuRingOffset);

}  // namespace sipi
