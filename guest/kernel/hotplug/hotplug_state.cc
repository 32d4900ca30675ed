#include "guest/kernel/alloc.h"
#include "guest/kernel/hotplug/control.h"
#include "guest/kernel/hotplug/sections.h"
#include "guest/kernel/hotplug/state.h"
#include "guest/kernel/hotplug/step_ops.h"

namespace sipi {
namespace {

using abi::CpuhpState;

constexpr uint32_t Number(CpuhpState state) { return static_cast<uint32_t>(state); }

// The control CPU's section has a word of its own: with kick+wait an AP is in its STARTING section
// while PREPARE steps are still to come.
platform::AtomicRef<uint32_t> StateWord(Kernel& kernel, CpuNumber cpu, Section section) {
  abi::CpuSlot& slot = kernel.slot(cpu);
  return platform::AtomicRef<uint32_t>(section == Section::kPrepare ? slot.prepare_state
                                                                    : slot.cpuhp_state);
}

uint32_t ThreadsOfACore(Kernel& kernel) {
  uint32_t most = 0;
  for (uint32_t cpu = 0; cpu < kernel.params->cpu_count; ++cpu) {
    if (kernel.cpus[cpu].thread > most) most = kernel.cpus[cpu].thread;
  }
  return most + 1;
}

// SMT control as boot leaves it: siblings that nobody is to bring up may not come later, either.
uint32_t ThreadsToBringUp(Kernel& kernel) {
  uint32_t most = 0;
  for (uint32_t i = 0; i < kernel.params->order_count; ++i) {
    const uint32_t thread = kernel.cpus[kernel.order[i]].thread;
    if (thread > most) most = thread;
  }
  return most + 1;
}

uint32_t NodesOf(Kernel& kernel) {
  uint32_t last = 0;
  for (uint32_t cpu = 0; cpu < kernel.params->cpu_count; ++cpu) {
    if (kernel.cpus[cpu].node > last) last = kernel.cpus[cpu].node;
  }
  return last + 1;
}

const CpuhpStep* FindStep(const CpuhpTable& table, CpuhpState state) {
  for (const CpuhpStep* step = table.begin[0]; step != table.begin[kSections]; ++step) {
    if (step->state == state) return step;
  }
  return nullptr;
}

}  // namespace

void HotplugInit(Kernel& kernel) {
  auto& hotplug = *AllocateArray<Hotplug>(kernel, 1);
  const uint32_t count = kernel.params->cpu_count;
  hotplug.cpus = AllocateArray<CpuHotplug>(kernel, count);
  hotplug.cpus_lock.Init(kernel);
  hotplug.mem_lock.Init(kernel);
  hotplug.max_threads = ThreadsOfACore(kernel);
  hotplug.allowed_threads = ThreadsToBringUp(kernel);
  hotplug.steps = &kServiceSteps;
  kernel.hotplug = &hotplug;
  for (uint32_t cpu = 0; cpu < count; ++cpu) {
    kernel.percpu(CpuNumber(cpu)).hotplug = &hotplug.cpus[cpu];
  }
  hotplug.cpus[0].active.Store(1, std::memory_order_relaxed);
  hotplug.nodes = AllocateArray<NodeHotplug>(kernel, NodesOf(kernel));
  hotplug.nodes[kernel.cpus[0].node].active_cpus.Store(1, std::memory_order_relaxed);
  // The hotplug scenario has its step fail once per operation, and later.
  const abi::FaultSpec& fault = kernel.params->fault;
  if (fault.kind == abi::Fault::kFailStep && fault.cpu < count &&
      kernel.params->scenario != abi::Scenario::kHotplug) {
    hotplug.cpus[fault.cpu].fail = static_cast<uint32_t>(fault.value);
    hotplug.cpus[fault.cpu].fail_always = true;
  }
}

void HotplugPlugSteps(Kernel& kernel) {
  kernel.kick_means = sequence::Means::kEach;
  kernel.tree = false;
  for (uint32_t cpu = 0; cpu < kernel.params->cpu_count; ++cpu) {
    kernel.slots[cpu].on_its_own = 0;
    kernel.slots[cpu].tree_rank = 0;
  }
  kernel.hotplug->booted = true;
  kernel.hotplug->steps = &PluggedSteps(kernel.kernel_knobs().hotplug_steps);
}

void HotplugSynchronize(Kernel& kernel) {
  if (kernel.hotplug->expedite_own_calls.Load(std::memory_order_relaxed) != 0) {
    rcu::SynchronizeExpedited(kernel);
  } else {
    rcu::Synchronize(kernel);
  }
}

CpuhpState CpuState(Kernel& kernel, CpuNumber cpu) {
  const uint32_t own = StateWord(kernel, cpu, Section::kOnline).Load(std::memory_order_acquire);
  if (own >= Number(CpuhpState::kApOnlineIdle)) return static_cast<CpuhpState>(own);
  return static_cast<CpuhpState>(
      StateWord(kernel, cpu, Section::kPrepare).Load(std::memory_order_acquire));
}

void EnterState(Kernel& kernel, CpuNumber cpu, Section section, CpuhpState state) {
  platform::Trace(abi::TraceEvent::kCpuhpEnter, static_cast<uint16_t>(cpu.value), Number(state));
  StateWord(kernel, cpu, section).Store(Number(state), std::memory_order_release);
}

Error SectionUp(PerCpu& self, CpuNumber cpu, Section section, CpuhpState target) {
  StepOps ops(self, cpu, section);
  return WalkUp(self.kernel->hotplug->steps->Steps(section), StateBelow(section), target, ops);
}

void SectionDown(PerCpu& self, CpuNumber cpu, Section section) {
  StepOps ops(self, cpu, section);
  const CpuhpState from = CpuhpProgress(*self.kernel, cpu, section);
  (void)WalkDown(self.kernel->hotplug->steps->Steps(section), from, StateBelow(section), ops);
}

bool CanStopAt(CpuhpState state) {
  if (state > CpuhpState::kOnline || state == CpuhpState::kCreateThreads) return false;
  return state < CpuhpState::kKickAp || state >= CpuhpState::kApOnlineIdle;
}

bool CpuOnline(Kernel& kernel, CpuNumber cpu) {
  return platform::AtomicRef<uint32_t>(kernel.slot(cpu).online).Load(std::memory_order_acquire) !=
         0;
}
bool CpuActive(Kernel& kernel, CpuNumber cpu) {
  return HotplugOf(kernel, cpu).active.Load(std::memory_order_acquire) != 0;
}
bool CpuDying(Kernel& kernel, CpuNumber cpu) {
  return HotplugOf(kernel, cpu).dying.Load(std::memory_order_acquire) != 0;
}

bool HotplugSettled(Kernel& kernel) {
  return kernel.hotplug->cpus_lock.sync().IsIdle() && kernel.hotplug->mem_lock.sync().IsIdle();
}

Error InjectFailure(Kernel& kernel, CpuNumber cpu, CpuhpState state) {
  if (cpu.value >= kernel.params->cpu_count) return Error::kInvalid;
  const CpuhpStep* step = FindStep(*kernel.hotplug->steps, state);
  if (step == nullptr || (step->startup == nullptr && step->teardown == nullptr))
    return Error::kInvalid;
  // With interrupts off there is no way back; and what follows a CPU's death cannot fail.
  if (step->section == Section::kStarting) return Error::kInvalid;
  if (step->section == Section::kPrepare && CpuState(kernel, cpu) > CpuhpState::kBringupCpu)
    return Error::kInvalid;
  CpuHotplug& hotplug = HotplugOf(kernel, cpu);
  hotplug.fail = Number(state);
  hotplug.fail_always = false;
  return Error::kNone;
}

void ClearFailure(Kernel& kernel, CpuNumber cpu) {
  HotplugOf(kernel, cpu).fail = CpuHotplug::kNoState;
}

ControlThread::ControlThread(CpuNumber target) {
  Thread& thread = *CurrentThread();
  uint32_t cpu = thread.cpu.Load(std::memory_order_relaxed);
  affinity_ = thread.affinity.Load(std::memory_order_relaxed);
  if (thread.per_cpu) {
    SIPI_ASSERT(cpu != target.value);  // a CPU cannot take itself down
    return;
  }
  if (cpu == target.value) cpu = kBootCpu.value;
  SIPI_ASSERT(SetAffinity(thread, cpu));
}

ControlThread::~ControlThread() {
  Thread& thread = *CurrentThread();
  if (thread.per_cpu || SetAffinity(thread, affinity_)) return;
  (void)SetAffinity(thread, Thread::kAnyCpu);  // it was bound to the CPU that has gone
}

}  // namespace sipi
