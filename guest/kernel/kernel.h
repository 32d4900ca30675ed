// The one guest kernel. Nothing mutable in guest/kernel lives outside it, so that many machines fit
// one process.
#pragma once

#include <cstdint>

#include "apic/regs/types.h"
#include "guest/abi/boot_params.h"
#include "guest/abi/layout.h"
#include "guest/abi/percpu.h"
#include "guest/kernel/percpu.h"
#include "guest/platform/platform.h"

namespace sipi {

// What all CPUs are asked to do by a function call IPI.
enum class CallFunction : uint32_t { kNone, kAnswer, kCacheSetup, kPrint, kHalt };

struct Scheduler;
struct Hotplug;
struct Thread;
namespace rcu {
struct State;
struct Head;
}  // namespace rcu

struct Kernel {
  const abi::BootParams* params = nullptr;
  const abi::CpuEntry* cpus = nullptr;  // [params->cpu_count]
  const uint32_t* order = nullptr;      // [params->order_count]
  abi::CpuSlot* slots = nullptr;        // [params->cpu_count]
  abi::ResultPage* result = nullptr;

  sequence::Strategy strategy;                          // after a veto
  sequence::Means kick_means = sequence::Means::kEach;  // of the pass that runs
  CpuNumber upcoming{0};  // the AP that the control CPU turns to next; CPU 0: none
  bool tree = false;      // the strategy wakes CPUs through a tree
  bool reuse_calibration = false;
  bool boot_calibrated = false;
  bool tsc_deadline = false;
  bool plain_steps = false;  // neither services nor a step that is to fail

  // CPUs of a concurrent pass that are not online yet; whoever takes it to 0 wakes the control CPU.
  platform::Atomic<uint32_t> remaining{0};
  platform::Atomic<uint32_t> online_count{1};
  platform::Atomic<uint32_t> topology_lock{0};

  // TSC check: one AP at a time against the control CPU.
  platform::Atomic<uint32_t> tsc_check_lock{0};
  platform::Atomic<uint32_t> tsc_check_request{0};  // CPU number + 1: it asks for its check
  platform::Atomic<uint32_t> tsc_check_served{0};   // likewise: the control CPU has come to it
  platform::Atomic<uint32_t> tsc_pair_lock{0};
  uint64_t tsc_last_ticks = 0;                       // guarded by tsc_pair_lock
  platform::Atomic<uint32_t> tsc_backward_ticks{0};  // of the check that runs

  // Function call IPIs.
  platform::Atomic<uint32_t> call_function{0};  // CallFunction
  platform::Atomic<uint32_t> call_pending{0};

  // The kernel beyond bring-up; null without KernelKnobs::services.
  platform::Atomic<uint64_t> heap_used{0};
  // What thread "init" runs instead of the scenario; set by tests before KernelMain.
  void (*init_function)(Kernel& kernel) = nullptr;
  Scheduler* scheduler = nullptr;
  rcu::State* rcu = nullptr;
  rcu::Head* rcu_early = nullptr;  // callbacks from before rcu::Init, the last first
  Hotplug* hotplug = nullptr;
  void* case_data = nullptr;  // Scenario::kCases' own

  abi::CpuSlot& slot(CpuNumber cpu) const { return slots[cpu.value]; }
  const abi::CpuEntry& entry(CpuNumber cpu) const { return cpus[cpu.value]; }
  const abi::Knobs& knobs() const { return params->knobs; }
  const abi::KernelKnobs& kernel_knobs() const { return params->kernel; }
  PerCpu& percpu(CpuNumber cpu) const {
    return *reinterpret_cast<PerCpu*>(params->percpu_gpa +
                                      uint64_t{cpu.value} * params->percpu_stride_bytes);
  }
  bool FaultIs(abi::Fault kind, CpuNumber cpu) const {
    return params->fault.kind == kind && params->fault.cpu == cpu.value;
  }
};

inline constexpr CpuNumber kBootCpu{0};

// Entry of the boot CPU, on its own stack, interrupts off, kernel.params set. Never returns.
[[noreturn]] void KernelMain(Kernel& kernel, uint64_t boot_entry_ticks);

// Entry of an AP, on its own stack, interrupts off. Never returns.
[[noreturn]] void ApMain(Kernel& kernel, PerCpu& self, uint64_t first_instruction_ticks);

// Interrupts that the platform does not handle itself. Runs with interrupts off; sends the EOI.
void HandleInterrupt(PerCpu& self, Vector vector);

// The platform calls it at the end of an interrupt, on the stack of what was interrupted,
// interrupts off. Runs another thread if one should and may; returns when the interrupted one has
// its turn again, maybe on another CPU.
void PreemptAfterInterrupt();

}  // namespace sipi
