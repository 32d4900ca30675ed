// The tick: a timer interrupt at a jiffy's end, on those CPUs only where threads take turns or RCU
// waits for the CPU.
#include "guest/kernel/apic.h"
#include "guest/kernel/rcu/rcu.h"
#include "guest/kernel/sched/run_queue.h"
#include "guest/kernel/sched/time.h"

namespace sipi {
namespace {

// A thread's turn. It ends at the first tick after that.
constexpr uint64_t kSliceUs = 3000;

uint64_t NextJiffyTicks(const Scheduler& scheduler) {
  const uint64_t passed = platform::NowTicks() - scheduler.boot_ticks;
  return scheduler.boot_ticks +
         (passed / scheduler.ticks_per_jiffy + 1) * scheduler.ticks_per_jiffy;
}

// The CPU's timer is set for that, or for nothing.
void Program(PerCpu& self, uint64_t ticks) {
  RunQueue& queue = *self.run_queue;
  if (!self.kernel->tsc_deadline) {
    self.timer_armed_ticks = 0;
    if (ticks != kNoTimer) return ArmTimer(self, {ticks});
    return platform::ApicWrite(apic::Reg::kTimerInitial, 0);
  }
  if (!queue.timer_mode_set) {
    queue.timer_mode_set = true;
    platform::ApicWrite(apic::Reg::kLvtTimer, apic::kLvtTimerTscDeadline | abi::kTimerVector);
  }
  // 0 disarms (SDM vol 3A, 11.5.4.1).
  self.timer_armed_ticks = ticks == kNoTimer ? 0 : ticks;
  platform::WriteTscDeadline(self.timer_armed_ticks);
}

// When this CPU's next timer interrupt is needed.
uint64_t NextDueTicks(PerCpu& self) {
  RunQueue& queue = *self.run_queue;
  uint64_t next = queue.next_timer_ticks;
  if (queue.tick_wanted || rcu::NeedsTick(self)) {
    if (queue.tick_ticks == 0) queue.tick_ticks = NextJiffyTicks(*self.kernel->scheduler);
    if (queue.tick_ticks < next) next = queue.tick_ticks;
  } else {
    queue.tick_ticks = 0;
  }
  return next;
}

}  // namespace

void ArmNextTimer(PerCpu& self) {
  const uint64_t next = NextDueTicks(self);
  // One that comes earlier for nothing costs less than telling the timer each time.
  if (next == kNoTimer || (self.timer_armed_ticks != 0 && self.timer_armed_ticks <= next)) return;
  Program(self, next);
}

void ArmForIdle(PerCpu& self) {
  const uint64_t next = NextDueTicks(self);
  const uint64_t armed = self.timer_armed_ticks == 0 ? kNoTimer : self.timer_armed_ticks;
  if (next != armed) Program(self, next);
}

bool TurnIsOver(const RunQueue& queue) {
  return platform::NowTicks() - queue.current_since_ticks >= platform::TicksOfUs(kSliceUs);
}

void SchedTick(PerCpu& self) {
  RunQueue& queue = *self.run_queue;
  Kernel& kernel = *self.kernel;
  if (self.need_resched == static_cast<uint32_t>(Resched::kLazy)) return SetNeedResched(self);
  queue.lock.Lock(kernel);
  const Thread& current = *queue.current;
  const bool others = queue.waiting_count[static_cast<uint32_t>(current.priority)] != 0;
  const bool over = TurnIsOver(queue);
  queue.lock.Unlock();
  if (others && over && &current != queue.idle && current.priority != Priority::kStop) {
    const bool lazy = kernel.kernel_knobs().preemption == abi::Preemption::kLazy &&
                      current.priority == Priority::kNormal;
    Demand(self, lazy ? Resched::kLazy : Resched::kNow);
  }
  PushThread(self);
}

void TakeRequest(PerCpu& self) {
  RunQueue& queue = *self.run_queue;
  const uint32_t request = queue.request.Exchange(0, std::memory_order_seq_cst);
  // One that comes twice, or late, does no harm.
  Demand(self, request != 0 ? static_cast<Resched>(request) : Resched::kNow);
}

}  // namespace sipi
