// cpuhp/N: the thread on which a CPU runs its own ONLINE section. It sleeps between requests, also
// while its CPU is off.
#include "guest/kernel/hotplug/step_ops.h"

namespace sipi {
namespace {

using abi::CpuhpState;

Error Obey(PerCpu& self, HotplugCommand command, CpuhpState target) {
  Kernel& kernel = *self.kernel;
  const CpuNumber cpu = self.cpu;
  const StepSpan steps = kernel.hotplug->steps->Steps(Section::kOnline);
  const CpuhpState from = CpuState(kernel, cpu);
  StepOps ops(self, cpu, Section::kOnline);
  if (command == HotplugCommand::kDown) return WalkDown(steps, from, target, ops);
  const Error error = WalkUp(steps, from, target, ops);
  if (error != Error::kNone || target != CpuhpState::kOnline) return error;
  platform::Trace(abi::TraceEvent::kOnline, static_cast<uint16_t>(cpu.value), 0);
  platform::AtomicRef<uint32_t>(self.slot->cpuhp_state)
      .Exchange(static_cast<uint32_t>(CpuhpState::kOnline), std::memory_order_seq_cst);
  return error;
}

void RunHotplugThread(void* argument) {
  auto& self = *static_cast<PerCpu*>(argument);
  Kernel& kernel = *self.kernel;
  CpuHotplug& hotplug = HotplugOf(kernel, self.cpu);
  for (;;) {
    hotplug.asked.Wait([&] { return hotplug.command.Load(std::memory_order_acquire) != 0; });
    const auto command =
        static_cast<HotplugCommand>(hotplug.command.Exchange(0, std::memory_order_seq_cst));
    const bool on_its_own = self.slot->on_its_own != 0;
    hotplug.result = Obey(self, command, hotplug.target);
    if (on_its_own) {
      // A concurrent bring-up: nobody waits for this CPU alone.
      kernel.remaining.FetchAdd(~0u, std::memory_order_seq_cst);
    } else {
      hotplug.done.Complete(kernel);
    }
  }
}

}  // namespace

void MakeHotplugThread(Kernel& kernel, CpuNumber cpu) {
  CpuHotplug& hotplug = HotplugOf(kernel, cpu);
  if (hotplug.thread != nullptr) return;
  hotplug.thread = &SpawnThread(kernel, {.name = "cpuhp/%",
                                         .index = cpu.value,
                                         .function = RunHotplugThread,
                                         .argument = &kernel.percpu(cpu),
                                         .cpu = cpu.value});
}

void StartHotplugThread(Kernel& kernel, CpuNumber cpu, HotplugCommand command, CpuhpState target) {
  CpuHotplug& hotplug = HotplugOf(kernel, cpu);
  hotplug.target = target;
  hotplug.command.Exchange(static_cast<uint32_t>(command), std::memory_order_seq_cst);
  hotplug.asked.WakeAll(kernel);
}

Error AskHotplugThread(Kernel& kernel, CpuNumber cpu, HotplugCommand command, CpuhpState target) {
  CpuHotplug& hotplug = HotplugOf(kernel, cpu);
  hotplug.done.Reset();
  StartHotplugThread(kernel, cpu, command, target);
  hotplug.done.Wait();  // its owner is cpuhp/N
  return hotplug.result;
}

}  // namespace sipi
