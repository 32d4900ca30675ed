// Torture's elements: a pool, and the stages that an element goes through once it is taken out.
#include "guest/kernel/sched/lock.h"
#include "guest/scenario/torture.h"

namespace sipi::torture {
namespace {

void FreeElement(Torture& torture, Element& element) {
  element.alive.Store(0, std::memory_order_release);
  IrqSpinGuard guard(*torture.kernel, torture.pool_lock);
  element.next_free = torture.first_free;
  torture.first_free = static_cast<uint32_t>(&element - torture.elements);
}

}  // namespace

void MakeElements(Torture& torture) {
  torture.elements = AllocateArray<Element>(*torture.kernel, kElements);
  for (uint32_t i = 0; i < kElements; ++i) {
    torture.elements[i].torture = &torture;
    FreeElement(torture, torture.elements[i]);
  }
}

uint32_t TakeElement(Torture& torture) {
  IrqSpinGuard guard(*torture.kernel, torture.pool_lock);
  const uint32_t index = torture.first_free;
  if (index != kNoElement) torture.first_free = torture.elements[index].next_free;
  return index;
}

bool AdvanceElement(Torture& torture, Element& element) {
  const uint32_t stage = element.stage.Load(std::memory_order_relaxed);
  const uint32_t counted = stage < kPipeStages ? stage : kPipeStages;
  torture.freed[counted].elements.FetchAdd(1, std::memory_order_relaxed);
  element.stage.Store(stage + 1, std::memory_order_release);
  if (stage + 1 < kPipeStages) return false;
  FreeElement(torture, element);
  return true;
}

}  // namespace sipi::torture
