// CPUs go off and on, one after the other, `rounds` times. With Fault::kFailStep the step is to
// fail in each operation of that CPU; the CPU must then be where it was, and the next try works. A
// CPU that does not go or come is left as it is: the timeline says so, and the others have their
// turn.
#include "guest/kernel/hotplug/hotplug.h"
#include "guest/scenario/scenario.h"

namespace sipi {
namespace {

using abi::CpuhpState;

class OffAndOn {
 public:
  explicit OffAndOn(Kernel& kernel) : kernel_(kernel) {}

  void Toggle(CpuNumber cpu) {
    if (!CpuOnline(kernel_, cpu)) return;  // it never came
    if (Move(cpu, CpuhpState::kOffline)) (void)Move(cpu, CpuhpState::kOnline);
  }

 private:
  static Error Go(Kernel& kernel, CpuNumber cpu, CpuhpState target) {
    return target == CpuhpState::kOnline ? CpuUp(kernel, cpu, target)
                                         : CpuDown(kernel, cpu, target);
  }

  bool Move(CpuNumber cpu, CpuhpState target) {
    const bool was_online = CpuOnline(kernel_, cpu);
    if (Armed(cpu)) {
      const Error error = Go(kernel_, cpu, target);
      ClearFailure(kernel_, cpu);
      // Where this direction has no such step, nothing failed.
      if (error == Error::kNone) return true;
      SIPI_ASSERT(CpuOnline(kernel_, cpu) == was_online);
    }
    return Go(kernel_, cpu, target) == Error::kNone;
  }

  bool Armed(CpuNumber cpu) {
    if (!kernel_.FaultIs(abi::Fault::kFailStep, cpu)) return false;
    const auto state = static_cast<CpuhpState>(kernel_.params->fault.value);
    return InjectFailure(kernel_, cpu, state) == Error::kNone;
  }

  Kernel& kernel_;
};

}  // namespace

void RunHotplug(Kernel& kernel) {
  const abi::ScenarioKnobs& knobs = kernel.params->scenario_knobs;
  OffAndOn toggle(kernel);
  for (uint32_t round = 0; round < knobs.rounds; ++round) {
    if (knobs.hotplug_cpu != 0) {
      toggle.Toggle(CpuNumber(knobs.hotplug_cpu));
      continue;
    }
    for (uint32_t i = 0; i < kernel.params->order_count; ++i)
      toggle.Toggle(CpuNumber(kernel.order[i]));
  }
}

}  // namespace sipi
