// Torture's updater: puts a new element in the place of the current one and lets the old one go
// through the pipe, each stage by a grace period of another kind.
//
// Checks: rcu_expedite_gp() nests. The levels go 0, 1, 2, 3, 2, 1, 0: above 0 grace periods are
// expedited, at 0 they are not.
#include "guest/scenario/torture.h"

namespace sipi::torture {
namespace {

using abi::TortureUpdate;

constexpr int32_t kMaxExpediting = 3;

struct Writer : Actor {
  uint32_t removed[kElements];  // those that this thread itself moves on
  uint32_t removed_count = 0;
  int32_t expediting = 0;  // level; on the way down: minus the level
  bool can_expedite = false;
};

// A grace period has passed for all that are on the list.
void AdvanceRemoved(Writer& self) {
  Torture& torture = *self.torture;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < self.removed_count; ++i) {
    const uint32_t index = self.removed[i];
    if (!AdvanceElement(torture, torture.elements[index])) self.removed[kept++] = index;
  }
  self.removed_count = kept;
}

void PipeCallback(rcu::Head& head) {
  auto& element = static_cast<Element&>(head);
  Torture& torture = *element.torture;
  CountCallback(torture);
  if (!AdvanceElement(torture, element)) QueueCallback(torture, element, PipeCallback);
}

void Retire(Writer& self, uint32_t old) {
  Torture& torture = *self.torture;
  Element& element = torture.elements[old];
  (void)AdvanceElement(torture, element);  // to stage 1: new readers do not find it any more
  const TortureUpdate kind = RandomUpdate(self.random);
  CountUpdate(self.tally, kind);
  if (kind == TortureUpdate::kCall) return QueueCallback(torture, element, PipeCallback);
  WaitForGracePeriod(self, kind);
  self.removed[self.removed_count++] = old;
  AdvanceRemoved(self);
}

void CycleExpediting(Writer& self) {
  if (!self.can_expedite) return;
  Kernel& kernel = *self.torture->kernel;
  if (self.expediting >= 0) {
    rcu::ExpediteGp(kernel);
    if (++self.expediting == kMaxExpediting) self.expediting = -kMaxExpediting;
  } else {
    rcu::UnexpediteGp(kernel);
    ++self.expediting;
  }
  if (rcu::GpIsExpedited(kernel) != (self.expediting != 0)) {
    Fail(self.tally, abi::TortureCheck::kNesting);
  }
}

void Write(CrewMember& member) {
  auto& self = static_cast<Writer&>(member);
  Torture& torture = *self.torture;
  Kernel& kernel = *torture.kernel;
  self.can_expedite = !rcu::GpIsExpedited(kernel) && !rcu::GpIsNormal(kernel);
  while (!torture.stopping()) {
    RandomSleep(self, 1000);
    const uint32_t fresh = TakeElement(torture);
    if (fresh == kNoElement) continue;
    Element& element = torture.elements[fresh];
    element.stage.Store(0, std::memory_order_relaxed);
    element.alive.Store(1, std::memory_order_relaxed);
    const uint32_t old = torture.current.Exchange(fresh, std::memory_order_acq_rel);
    if (old != kNoElement) Retire(self, old);
    CycleExpediting(self);
  }
  while (self.expediting != 0) CycleExpediting(self);
}

}  // namespace

void SpawnWriter(Torture& torture) {
  constexpr uint32_t kStream = 0x10000;
  torture.crew->Spawn(MakeActor<Writer>(torture, kStream, Write),
                      {.name = "torture_writer", .priority = Priority::kFifo});
}

}  // namespace sipi::torture
