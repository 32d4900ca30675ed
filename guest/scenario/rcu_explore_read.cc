// The explored readers: in threads, preempted or not, and in interrupts of idle CPUs.
#include "guest/kernel/rcu/read_side.h"
#include "guest/kernel/sched/smp_call.h"
#include "guest/kernel/sched/time.h"
#include "guest/scenario/rcu_explore.h"

namespace sipi::explore {
namespace {

// Now and then longer than a tick, so that another thread gets the CPU in the middle, and longer
// than a quiet grace period.
void Linger(Random& random) {
  switch (random.Below(8)) {
    case 0:
      return platform::DelayUs(random.Below(14'000));
    case 1:
    case 2:
      return platform::DelayUs(random.Below(200));
    default:
      return;
  }
}

void LookAt(Element& element) {
  if (element.freed.Load(std::memory_order_acquire) != 0) {
    SIPI_PANIC("a reader holds an element that has been freed");
  }
}

void ReadInInterrupt(void* argument) {
  auto& read = *static_cast<InterruptRead*>(argument);
  if (read.random.OneIn(4)) QueueRemote(*read.explore);
  ReadOnce(*read.explore, read.random, true);
  read.busy.Store(0, std::memory_order_release);
}

// Unless that CPU is not online, which is as good.
void ReadOn(Actor& self, CpuNumber cpu) {
  InterruptRead& read = self.interrupt;
  if (read.busy.Exchange(1, std::memory_order_acquire) != 0) return;
  read.explore = self.explore;
  read.random = Random(self.random.Next(), 0);
  if (CallFunctionSingle(*self.explore->kernel, cpu, ReadInInterrupt, &read, false)) return;
  read.busy.Store(0, std::memory_order_release);
}

}  // namespace

void ReadOnce(Explore& explore, Random& random, bool delays) {
  Kernel& kernel = *explore.kernel;
  Pointer& pointer = explore.pointers[random.Below(kPointers)];
  const bool nested = random.OneIn(4);
  rcu::ReadLock();
  const rcu::Cookie cookie = rcu::GetState(kernel);
  const rcu::FullCookie full = rcu::GetStateFull(kernel);
  Element& element = pointer.elements[pointer.at.Load(std::memory_order_acquire)];
  LookAt(element);
  if (delays) Linger(random);
  if (nested) {
    rcu::ReadLock();
    if (delays) Linger(random);
    rcu::ReadUnlock();
  }
  LookAt(element);
  if (rcu::Poll(kernel, cookie)) SIPI_PANIC("a reader's cookie is done before its section ends");
  if (rcu::PollFull(kernel, full)) {
    SIPI_PANIC("a reader's full cookie is done before its section ends");
  }
  rcu::ReadUnlock();
}

void Read(CrewMember& member) {
  auto& self = static_cast<Actor&>(member);
  Explore& explore = *self.explore;
  Kernel& kernel = *explore.kernel;
  for (uint32_t round = 0; round < 3 * explore.rounds; ++round) {
    ReadOnce(explore, self.random, true);
    const CpuNumber other(self.random.Below(kernel.params->cpu_count));
    if (self.random.OneIn(8)) MeetHotplug(self);
    if (self.random.OneIn(4)) ReadOn(self, other);
    // Bound to a CPU that may go: its thread is then moved in the middle of a section.
    if (self.random.OneIn(4)) (void)SetAffinity(*CurrentThread(), other.value);
    if (self.random.OneIn(4)) (void)SetAffinity(*CurrentThread(), Thread::kAnyCpu);
    if (self.random.OneIn(2)) SleepSomewhat(self.random, 3'000);
    CondResched();
  }
  while (self.interrupt.busy.Load(std::memory_order_acquire) != 0) SleepJiffies(1);
}

}  // namespace sipi::explore
