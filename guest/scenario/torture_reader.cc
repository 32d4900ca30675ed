// Torture's readers: each looks at the current element for a while, in threads and in timer
// interrupts, nested or not, preempted and moved in the middle.
//
// Checks: the element is not free and has not moved on by a whole grace period; a cookie from
// within the section is not done before its end; another reader's marks are in order
// (torture_order.cc).
#include "guest/kernel/rcu/read_side.h"
#include "guest/kernel/sched/time.h"
#include "guest/scenario/torture.h"

namespace sipi::torture {
namespace {

using abi::TortureCheck;

constexpr uint32_t kMaxNesting = 3;

// A read in interrupt context, on behalf of a reader.
struct IrqReader {
  Timer timer;
  platform::Atomic<uint32_t> busy{0};
  Actor* actor = nullptr;
};

struct Reader : Actor {
  IrqReader irq;
};

// How long a section takes: mostly next to nothing, sometimes a moment, rarely several ticks, so
// that the reader is preempted in it and grace periods have to wait.
void LingerInSection(Torture& torture, Random& random) {
  const uint32_t dice = random.Below(1024);
  if (dice == 0) {
    const uint64_t jiffy_us = JiffyNs(*torture.kernel) / 1000;
    platform::DelayUs(random.Below(static_cast<uint32_t>(3 * jiffy_us)));
  } else if (dice < 16) {
    platform::DelayUs(random.Below(300));
  } else if (dice < 256) {
    platform::DelayUs(random.Below(20));
  }
}

uint32_t Histogram(uint64_t value) {
  return static_cast<uint32_t>(value < kPipeStages ? value : kPipeStages);
}

// The element's way through the pipe as this section has seen it.
void LookAtElement(Torture& torture, Tally& tally, Element& element, uint64_t gps_before) {
  const uint32_t stage = element.stage.Load(std::memory_order_acquire);
  ++tally.counts.reads;
  ++tally.counts.pipe[Histogram(stage)];
  ++tally.counts.batch[Histogram(NormalGps(*torture.kernel) - gps_before)];
  if (stage > 1) Fail(tally, TortureCheck::kShortGracePeriod);
  if (element.alive.Load(std::memory_order_acquire) == 0) Fail(tally, TortureCheck::kFreedElement);
}

void Nest(Torture& torture, Random& random) {
  const uint32_t depth = random.OneIn(4) ? random.Below(kMaxNesting) : 0;
  for (uint32_t i = 0; i < depth; ++i) rcu::ReadLock();
  LingerInSection(torture, random);
  for (uint32_t i = 0; i < depth; ++i) rcu::ReadUnlock();
  if (depth != 0) LingerInSection(torture, random);
}

void ReadOnce(Reader& self) {
  Torture& torture = *self.torture;
  Kernel& kernel = *torture.kernel;
  Tally& tally = self.tally;
  const bool with_cookie = self.random.OneIn(4);
  rcu::ReadLock();
  OrderBegin(torture, self.index);
  const rcu::Cookie cookie = with_cookie ? rcu::GetState(kernel) : 0;
  const rcu::FullCookie full = with_cookie ? rcu::GetStateFull(kernel) : rcu::FullCookie();
  const uint64_t gps_before = NormalGps(kernel);
  const uint32_t index = torture.current.Load(std::memory_order_acquire);
  Nest(torture, self.random);
  if (index != kNoElement) {
    LookAtElement(torture, tally, torture.elements[index], gps_before);
  }
  if (with_cookie) {
    tally.counts.cookie_checks += 2;
    const bool done = rcu::Poll(kernel, cookie) || rcu::PollFull(kernel, full);
    if (done) Fail(tally, TortureCheck::kCookieInReader);
  }
  OrderEnd(torture, self.index);
  rcu::ReadUnlock();
}

// In the timer interrupt: a section without delays.
void ReadInInterrupt(void* argument) {
  auto& irq = *static_cast<IrqReader*>(argument);
  Actor& self = *irq.actor;
  Torture& torture = *self.torture;
  rcu::ReadLock();
  const uint64_t gps_before = NormalGps(*torture.kernel);
  const uint32_t index = torture.current.Load(std::memory_order_acquire);
  if (index != kNoElement) {
    LookAtElement(torture, self.tally, torture.elements[index], gps_before);
  }
  rcu::ReadUnlock();
  irq.busy.Store(0, std::memory_order_release);
}

void MayReadInInterrupt(Reader& self) {
  if (!self.random.OneIn(32) || self.irq.busy.Load(std::memory_order_acquire) != 0) return;
  self.irq.busy.Store(1, std::memory_order_relaxed);
  StartTimer(self.irq.timer, platform::DeadlineInUs(self.random.Below(500)));
}

void Read(CrewMember& member) {
  auto& self = static_cast<Reader&>(member);
  Torture& torture = *self.torture;
  while (!torture.stopping()) {
    ReadOnce(self);
    CheckOneOrder(torture, self.tally, self.random.Below(torture.readers));
    MayReadInInterrupt(self);
    if (self.random.OneIn(16)) RandomSleep(self, 1000);
    if (self.random.OneIn(256)) RandomMove(self);
    CondResched();
  }
  while (self.irq.busy.Load(std::memory_order_acquire) != 0) SleepJiffies(1);
}

}  // namespace

void SpawnReaders(Torture& torture) {
  torture.order_slots = AllocateArray<OrderSlot>(*torture.kernel, torture.readers);
  for (uint32_t i = 0; i < torture.readers; ++i) {
    auto& reader = MakeActor<Reader>(torture, 2 * i, Read);
    // Its tally apart: the interrupt may come in the middle of the reader's own.
    reader.irq.actor = &MakeActor(torture, 2 * i + 1, nullptr);
    reader.irq.timer.function = ReadInInterrupt;
    reader.irq.timer.argument = &reader.irq;
    torture.crew->Spawn(reader, {.name = "torture_rd/%", .index = i});
  }
}

}  // namespace sipi::torture
