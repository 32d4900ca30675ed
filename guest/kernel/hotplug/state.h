// What hotplug keeps: for each CPU, and for the machine. In machine memory, made by HotplugInit.
#pragma once

#include "guest/kernel/hotplug/hotplug.h"
#include "guest/kernel/hotplug/percpu_rwsem.h"

namespace sipi {

// What the control CPU asks a CPU's hotplug thread for.
enum class HotplugCommand : uint32_t { kNone = 0, kUp = 1, kDown = 2 };

struct CpuHotplug {
  static constexpr uint32_t kNoState = ~0u;

  // The masks, beside CpuSlot::online. Active: ordinary threads may be placed here; dying: on its
  // way down.
  platform::Atomic<uint32_t> active{0};
  platform::Atomic<uint32_t> dying{0};

  // A step that is to fail once (Linux: hotplug/fail), or always (Fault::kFailStep); kNoState:
  // none. Guarded by Hotplug::cpus_lock, as the request is.
  uint32_t fail = kNoState;
  bool fail_always = false;

  // An operation gave this CPU up while it ran, and has not seen it dead within the bound: nothing
  // of what PREPARE did for it may be undone before it is. The next operation on it looks again.
  // Guarded as above.
  bool lost = false;

  // The request. Written before `command`, read by the thread after it.
  Thread* thread = nullptr;
  abi::CpuhpState target = abi::CpuhpState::kOffline;
  Error result = Error::kNone;
  platform::Atomic<uint32_t> command{0};  // HotplugCommand
  WaitQueue asked;
  Completion done;       // the request
  Completion idle_done;  // the CPU is in its idle loop, STARTING section done
};

struct NodeHotplug {
  platform::Atomic<uint32_t> active_cpus{0};
};

struct Hotplug {
  PercpuRwsem cpus_lock;  // cpus_read_lock(), cpus_write_lock()
  PercpuRwsem mem_lock;   // mem_hotplug_begin()
  // Whole operations, one after the other (Linux: cpu_add_remove_lock). Before cpus_lock.
  Mutex add_remove;
  CpuHotplug* cpus = nullptr;         // by number
  const CpuhpTable* steps = nullptr;  // changes while no CPU moves
  NodeHotplug* nodes = nullptr;       // by number
  bool booted = false;                // bring-up is over (Linux: sched_smp_initialized)
  uint32_t max_threads = 1;           // of a core of this machine
  uint32_t allowed_threads = 1;       // SMT control; guarded by add_remove
  // SmtApproach::kHotplugCalls: the grace periods that hotplug itself asks for are expedited ones.
  platform::Atomic<uint32_t> expedite_own_calls{0};
};

inline CpuHotplug& HotplugOf(Kernel& kernel, CpuNumber cpu) {
  return kernel.hotplug->cpus[cpu.value];
}

// A grace period that the hotplug path itself waits for. Thread context, preemptible.
void HotplugSynchronize(Kernel& kernel);

// How far a CPU has come, by whoever took it there last. On its way through its STARTING section
// it is still where the control CPU's section stands: that one lets it go on or gives it up.
abi::CpuhpState CpuState(Kernel& kernel, CpuNumber cpu);
// Is told in the timeline and in the slot.
void EnterState(Kernel& kernel, CpuNumber cpu, Section section, abi::CpuhpState state);

// --- The control CPU's parts of one operation, with the write lock held (or at boot, where nobody
// else brings CPUs up).
Error BringUp(Kernel& kernel, CpuNumber cpu, abi::CpuhpState target);
Error TakeDown(Kernel& kernel, CpuNumber cpu, abi::CpuhpState target);
// From the idle loop to dead: the CPU is stopped, and undoes its STARTING section itself.
Error TakeCpuDead(Kernel& kernel, CpuNumber cpu);
// Has the CPU's hotplug thread take it to `target` within the ONLINE section, and waits.
Error AskHotplugThread(Kernel& kernel, CpuNumber cpu, HotplugCommand command,
                       abi::CpuhpState target);
// Without waiting: a concurrent bring-up, asked for by the CPU itself.
void StartHotplugThread(Kernel& kernel, CpuNumber cpu, HotplugCommand command,
                        abi::CpuhpState target);
// Makes cpuhp/N where there is none yet.
void MakeHotplugThread(Kernel& kernel, CpuNumber cpu);

}  // namespace sipi
