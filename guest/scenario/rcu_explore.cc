// The explored scenario's frame: threads, hotplug, and what must hold at the end.
#include "guest/scenario/rcu_explore.h"

#include "guest/kernel/sched/time.h"

namespace sipi {
namespace explore {
namespace {

constexpr uint32_t kReaders = 3;
constexpr uint64_t kMoverStream = 1000;

Actor& MakeActor(Explore& explore, uint32_t stream, void (*run)(CrewMember&)) {
  Kernel& kernel = *explore.kernel;
  Actor& actor = *AllocateArray<Actor>(kernel, 1);
  actor.body = run;
  actor.explore = &explore;
  actor.random = Random(kernel.params->scenario_knobs.seed, stream);
  return actor;
}

Explore& MakeExplore(Kernel& kernel) {
  Explore& explore = *AllocateArray<Explore>(kernel, 1);
  explore.kernel = &kernel;
  explore.crew = &MakeCrew(kernel);
  explore.rounds = kernel.params->scenario_knobs.rounds;
  explore.mover = Random(kernel.params->scenario_knobs.seed, kMoverStream);
  explore.pointers = AllocateArray<Pointer>(kernel, kPointers);
  for (uint32_t i = 0; i < kPointers; ++i) {
    for (uint32_t k = 0; k < kElements; ++k) {
      Element& element = explore.pointers[i].elements[k];
      element.pointer = &explore.pointers[i];
      element.freed.Store(k == 0 ? 0 : 1, std::memory_order_relaxed);
    }
  }
  return explore;
}

void CheckEnd(Explore& explore) {
  Kernel& kernel = *explore.kernel;
  CheckedBarrier(explore);
  CheckCallbacks(explore);
  for (uint32_t i = 0; i < kPointers; ++i) {
    Pointer& pointer = explore.pointers[i];
    const uint32_t current = pointer.at.Load(std::memory_order_acquire);
    for (uint32_t k = 0; k < kElements; ++k) {
      const bool freed = pointer.elements[k].freed.Load(std::memory_order_acquire) != 0;
      if (freed == (k == current)) SIPI_PANIC("an element is not what it should be at the end");
    }
  }
  const uint32_t updates = explore.updates.Load(std::memory_order_relaxed);
  SIPI_ASSERT(updates == kPointers * explore.rounds);
  if (rcu::GpIsExpedited(kernel) && kernel.kernel_knobs().rcu_expedited == 0) {
    SIPI_PANIC("rcu_expedite_gp() is not balanced at the end");
  }
}

}  // namespace

void SleepSomewhat(Random& random, uint32_t max_us) { SleepUs(random.Below(max_us)); }

}  // namespace explore

void RunRcuExplore(Kernel& kernel) {
  explore::Explore& explore = explore::MakeExplore(kernel);
  Crew& crew = *explore.crew;
  explore::PlugMoverIn(explore);
  uint32_t stream = 0;
  for (uint32_t i = 0; i < explore::kReaders; ++i) {
    crew.Spawn(explore::MakeActor(explore, stream++, explore::Read),
               {.name = "explore_rd/%", .index = i});
  }
  for (uint32_t i = 0; i < explore::kPointers; ++i) {
    crew.Spawn(explore::MakeActor(explore, stream++, explore::Update),
               {.name = "explore_up/%", .index = i});
  }
  crew.Spawn(explore::MakeActor(explore, stream++, explore::OnOff), {.name = "explore_onoff"});
  crew.Join();
  explore::CheckEnd(explore);
}

}  // namespace sipi
