// What disturbs the others: CPUs that go off and on at random, and a thread of high priority that
// takes one CPU after the other for a moment, so that whoever runs there is preempted and moves.
#include "guest/kernel/hotplug/hotplug.h"
#include "guest/kernel/sched/time.h"
#include "guest/scenario/torture.h"

namespace sipi::torture {
namespace {

constexpr uint32_t kStream = 0x50000;

bool Online(Torture& torture, CpuNumber cpu) {
  return platform::AtomicRef<uint32_t>(torture.kernel->slot(cpu).online)
             .Load(std::memory_order_seq_cst) != 0;
}

void TakeDown(Actor& self, CpuNumber cpu) {
  ++self.tally.counts.offline_tried;
  if (CpuDown(*self.torture->kernel, cpu, abi::CpuhpState::kOffline) == Error::kNone) {
    ++self.tally.counts.offline_ok;
  } else {
    Fail(self.tally, abi::TortureCheck::kHotplug);
  }
}

void BringUp(Actor& self, CpuNumber cpu) {
  ++self.tally.counts.online_tried;
  if (CpuUp(*self.torture->kernel, cpu, abi::CpuhpState::kOnline) == Error::kNone) {
    ++self.tally.counts.online_ok;
  } else {
    Fail(self.tally, abi::TortureCheck::kHotplug);
  }
}

void OnOff(CrewMember& member) {
  auto& self = static_cast<Actor&>(member);
  Torture& torture = *self.torture;
  while (!torture.stopping()) {
    RandomSleep(self, 5000);
    const CpuNumber cpu(1 + self.random.Below(torture.cpus - 1));
    Online(torture, cpu) ? TakeDown(self, cpu) : BringUp(self, cpu);
  }
  // As it was.
  for (uint32_t i = 1; i < torture.cpus; ++i) {
    if (!Online(torture, CpuNumber(i))) BringUp(self, CpuNumber(i));
  }
}

void Preempt(CrewMember& member) {
  auto& self = static_cast<Actor&>(member);
  while (!self.torture->stopping()) {
    RandomSleep(self, 3000);
    if (!SetAffinity(*CurrentThread(), self.random.Below(self.torture->cpus))) continue;
    platform::DelayUs(self.random.Below(300));
  }
}

}  // namespace

void SpawnOnOff(Torture& torture) {
  if (torture.kernel->params->scenario_knobs.onoff == 0 || torture.cpus < 2) return;
  torture.crew->Spawn(MakeActor(torture, kStream, OnOff), {.name = "torture_onoff"});
}

void SpawnPreempter(Torture& torture) {
  torture.crew->Spawn(MakeActor(torture, kStream + 1, Preempt),
                      {.name = "torture_preempt", .priority = Priority::kFifo});
}

}  // namespace sipi::torture
