#include "guest/scenario/scenario.h"

#include "guest/kernel/call.h"
#include "guest/kernel/print.h"
#include "guest/scenario/rcu_explore.h"
#include "guest/scenario/rcu_scenarios.h"

namespace sipi {

void RunScenario(PerCpu& self) {
  Kernel& kernel = *self.kernel;
  platform::Trace(abi::TraceEvent::kScenario, 0, static_cast<uint32_t>(kernel.params->scenario));
  switch (kernel.params->scenario) {
    case abi::Scenario::kSmpboot:
      break;
    case abi::Scenario::kPrint:
      CallAll(self, CallFunction::kPrint);
      break;
    case abi::Scenario::kIpiAll:
      CallEach(self);
      break;
    case abi::Scenario::kRcuScale:
      RunRcuScale(kernel);
      break;
    case abi::Scenario::kRefScale:
      RunRefScale(kernel);
      break;
    case abi::Scenario::kCallRcu:
      RunCallRcu(kernel);
      break;
    case abi::Scenario::kTorture:
      RunTorture(kernel);
      break;
    case abi::Scenario::kHotplug:
      RunHotplug(kernel);
      break;
    case abi::Scenario::kSmt:
      RunSmt(kernel);
      break;
    case abi::Scenario::kThreads:
      RunThreads(kernel);
      break;
    case abi::Scenario::kCases:
      RunCase(kernel);
      break;
    case abi::Scenario::kRcuExplore:
      RunRcuExplore(kernel);
      break;
    case abi::Scenario::kExpHotplug:
      RunExpHotplug(kernel);
      break;
  }
  if (kernel.params->fault.kind == abi::Fault::kHaltAll) CallAll(self, CallFunction::kHalt);
}

}  // namespace sipi
