// Memory ordering through a grace period.
//
// A reader notes in its slot, within its section, the generation that it found (`begun`) and, as
// its last act there, that it has done with it (`done`). The checker stores a new generation, waits
// for a grace period and tells all (`order_passed`). Whoever sees that, on any CPU, must see each
// section that had found an older generation done: it began before the grace period, which waited
// for it. And a section that begins after the grace period's beginning finds the new generation. So
// `begun` < passed and `done` < `begun` must never be seen together.
#include "guest/scenario/torture.h"

namespace sipi::torture {

void OrderBegin(Torture& torture, uint32_t reader) {
  const uint64_t generation = torture.order_generation.Load(std::memory_order_relaxed);
  torture.order_slots[reader].begun.Store(generation, std::memory_order_relaxed);
}

void OrderEnd(Torture& torture, uint32_t reader) {
  OrderSlot& slot = torture.order_slots[reader];
  slot.done.Store(slot.begun.Load(std::memory_order_relaxed), std::memory_order_relaxed);
}

void CheckOneOrder(Torture& torture, Tally& tally, uint32_t reader) {
  const uint64_t passed = torture.order_passed.Load(std::memory_order_acquire);
  OrderSlot& slot = torture.order_slots[reader];
  const uint64_t begun = slot.begun.Load(std::memory_order_acquire);
  const uint64_t done = slot.done.Load(std::memory_order_acquire);
  ++tally.counts.order_checks;
  if (begun < passed && done < begun) Fail(tally, abi::TortureCheck::kOrder);
}

namespace {

void CheckOrder(CrewMember& member) {
  auto& self = static_cast<Actor&>(member);
  Torture& torture = *self.torture;
  while (!torture.stopping()) {
    const uint64_t next = torture.order_generation.Load(std::memory_order_relaxed) + 1;
    torture.order_generation.Store(next, std::memory_order_relaxed);
    WaitForGracePeriod(self, RandomUpdate(self.random));
    torture.order_passed.Store(next, std::memory_order_release);
    for (uint32_t i = 0; i < torture.readers; ++i) CheckOneOrder(torture, self.tally, i);
    HandOver(torture);  // this thread comes by often, and has time
    RandomSleep(self, 2000);
  }
}

}  // namespace

void SpawnOrderChecker(Torture& torture) {
  constexpr uint32_t kStream = 0x20000;
  torture.crew->Spawn(MakeActor(torture, kStream, CheckOrder),
                      {.name = "torture_order", .priority = Priority::kFifo});
}

}  // namespace sipi::torture
