// What disturbs the others: CPUs that go off and on at random, and a thread of high priority that
// takes one CPU after the other for a moment, so that whoever runs there is preempted and moves.
#include "guest/kernel/hotplug/hotplug.h"
#include "guest/kernel/sched/time.h"
#include "guest/scenario/torture.h"

namespace sipi::torture {
namespace {

constexpr uint32_t kStream = 0x50000;

// Takes off and on what was online when it began, without the boot CPU. What has failed to go or to
// come is left alone from then on: each try would cost a time-out, and `tried` less `ok` is how
// many CPUs have failed.
struct OnOffer : Actor {
  uint32_t* cpus = nullptr;  // [left]
  uint32_t left = 0;
};

bool TakeDown(Actor& self, CpuNumber cpu) {
  ++self.tally.counts.offline_tried;
  if (CpuDown(*self.torture->kernel, cpu, abi::CpuhpState::kOffline) == Error::kNone) {
    ++self.tally.counts.offline_ok;
    return true;
  }
  Fail(self.tally, abi::TortureCheck::kHotplug);
  return false;
}

bool BringUp(Actor& self, CpuNumber cpu) {
  ++self.tally.counts.online_tried;
  if (CpuUp(*self.torture->kernel, cpu, abi::CpuhpState::kOnline) == Error::kNone) {
    ++self.tally.counts.online_ok;
    return true;
  }
  Fail(self.tally, abi::TortureCheck::kHotplug);
  return false;
}

void OnOff(CrewMember& member) {
  auto& self = static_cast<OnOffer&>(member);
  Torture& torture = *self.torture;
  Kernel& kernel = *torture.kernel;
  while (!torture.stopping() && self.left != 0) {
    RandomSleep(self, 5000);
    uint32_t& place = self.cpus[self.random.Below(self.left)];
    const CpuNumber cpu(place);
    const bool ok = CpuOnline(kernel, cpu) ? TakeDown(self, cpu) : BringUp(self, cpu);
    if (!ok) place = self.cpus[--self.left];
  }
  // As it was.
  for (uint32_t i = 0; i < self.left; ++i) {
    const CpuNumber cpu(self.cpus[i]);
    if (!CpuOnline(kernel, cpu)) (void)BringUp(self, cpu);
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
  const Crew& crew = *torture.crew;
  if (torture.kernel->params->scenario_knobs.onoff == 0 || crew.cpus() < 2) return;
  auto& actor = MakeActor<OnOffer>(torture, kStream, OnOff);
  actor.cpus = AllocateArray<uint32_t>(*torture.kernel, crew.cpus() - 1);
  for (uint32_t i = 1; i < crew.cpus(); ++i) actor.cpus[actor.left++] = crew.cpu(i);
  torture.crew->Spawn(actor, {.name = "torture_onoff", .priority = Priority::kFifo});
}

void SpawnPreempter(Torture& torture) {
  torture.crew->Spawn(MakeActor(torture, kStream + 1, Preempt),
                      {.name = "torture_preempt", .priority = Priority::kFifo});
}

}  // namespace sipi::torture
