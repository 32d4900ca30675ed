// The boot CPU's way through a run: set up, calibrate, bring the others up, run the scenario,
// report, end.
#include "guest/kernel/apic.h"
#include "guest/kernel/calibrate.h"
#include "guest/kernel/call.h"
#include "guest/kernel/hotplug/hotplug.h"
#include "guest/kernel/rcu/rcu.h"
#include "guest/kernel/sched/thread.h"
#include "guest/kernel/smpboot.h"
#include "guest/kernel/veto.h"
#include "guest/scenario/scenario.h"

namespace sipi {
namespace {

void SetUpBootCpu(Kernel& kernel, PerCpu& self, uint64_t boot_entry_ticks) {
  InitPerCpu(kernel, self, kBootCpu);
  platform::TraceAt(boot_entry_ticks, abi::TraceEvent::kBootEntry, 0, 0);
  platform::Trace(abi::TraceEvent::kLongMode, 0, 0);
  EnableLocalApic();
  abi::CpuSlot& slot = kernel.slot(kBootCpu);
  const abi::CpuEntry& entry = kernel.entry(kBootCpu);
  slot.sync_state = static_cast<uint32_t>(abi::SyncState::kOnline);
  slot.cpuhp_state = static_cast<uint32_t>(abi::CpuhpState::kOnline);
  slot.online = 1;
  kernel.slots[entry.core].core_cpus = 1;
  kernel.slots[entry.package].package_cpus = 1;
  kernel.tsc_deadline = platform::HasTscDeadline();
  kernel.plain_steps =
      kernel.params->fault.kind != abi::Fault::kFailStep && kernel.kernel_knobs().services == 0;
}

void ChooseStrategy(Kernel& kernel) {
  kernel.strategy = kernel.params->strategy;
  const abi::Veto veto = FindVeto(kernel);
  if (veto != abi::Veto::kNone && kernel.strategy.id != sequence::StrategyId::kSerial) {
    kernel.result->veto = static_cast<uint32_t>(veto);
    platform::Trace(abi::TraceEvent::kVeto, 0, static_cast<uint32_t>(veto));
    sequence::Strategy serial = sequence::MakeStrategy(sequence::StrategyId::kSerial);
    serial.reuse_calibration = kernel.strategy.reuse_calibration;
    serial.overlap = kernel.strategy.overlap;
    kernel.strategy = serial;
  }
  if (kernel.strategy.reuse_calibration != 0) {
    kernel.reuse_calibration = platform::InvariantTsc();
    kernel.result->reuse_refused = kernel.reuse_calibration ? 0 : 1;
  }
}

// The boot CPU becomes a thread. It stays on its CPU unless its scenario lets it go.
void StartServices(Kernel& kernel) {
  NoteBootStage(kernel, BootStage::kClockKnown);
  SchedInit(kernel);
  NoteBootStage(kernel, BootStage::kSchedulerUp);
  rcu::Init(kernel);
  HotplugInit(kernel);
  platform::IrqEnable();
  NoteBootStage(kernel, BootStage::kRcuUp);
  // Until here nobody but this context has run.
  rcu::SchedulerStarting(kernel);
  NoteBootStage(kernel, BootStage::kThreadsMayRun);
  rcu::SpawnThreads(kernel);
  NoteBootStage(kernel, BootStage::kThreadsUp);
}

void RetryFailed(Kernel& kernel, PerCpu& self) {
  kernel.kernel_knobs().services != 0 ? HotplugRetry(kernel) : RetryFailedCpus(self);
}

void NoteCpusOnline(Kernel& kernel) {
  kernel.result->cpus_online = kernel.online_count.Load(std::memory_order_seq_cst);
}

}  // namespace

void KernelMain(Kernel& kernel, uint64_t boot_entry_ticks) {
  PerCpu& self = kernel.percpu(kBootCpu);
  kernel.result->status = static_cast<uint32_t>(abi::GuestStatus::kRunning);
  SetUpBootCpu(kernel, self, boot_entry_ticks);
  if (kernel.params->fault.cpu == 0) platform::Break(kernel.params->fault);
  ChooseStrategy(kernel);
  const bool host_driven = static_cast<abi::Driver>(kernel.params->driver) == abi::Driver::kHost;
  const bool services = kernel.kernel_knobs().services != 0;
  if (kernel.strategy.overlap == 0 || host_driven || services) CalibrateBootCpu(self);
  if (services) StartServices(kernel);
  platform::PrepareStartup(kernel);
  platform::IrqEnable();
  // Where the first pass kicks CPU after CPU, the VMM's own start-up must not count as theirs.
  // Where it prepares all of them first, the VMM may make vCPUs meanwhile.
  if (kernel.strategy.passes[0].means == sequence::Means::kEach) RingBeforeKick(kernel);
  if (services) {
    HotplugBringUp(kernel);
    NoteBootStage(kernel, BootStage::kCpusUp);
  } else if (host_driven) {
    LetHostBringUp(self);
  } else {
    BringUpSecondaryCpus(self);
  }
  if (kernel.params->retry != 0) RetryFailed(kernel, self);
  if (services) rcu::EndInkernelBoot(kernel);
  kernel.init_function != nullptr ? kernel.init_function(kernel) : RunScenario(self);
  NoteCpusOnline(kernel);
  if (kernel.params->settle != 0) {
    platform::Trace(abi::TraceEvent::kScenario, 0, abi::kMarkSettle);
    RetryFailed(kernel, self);
    NoteCpusOnline(kernel);
  }
  kernel.result->status = static_cast<uint32_t>(abi::GuestStatus::kDone);
  platform::Exit(0);
}

}  // namespace sipi
