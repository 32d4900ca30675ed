// Interrupts of a kernel with services, and RCU's work behind them, which Linux has in a softirq:
// interrupts on, preemption disabled, on the stack of what was interrupted. So it may come between
// any two instructions with interrupts on: locks that it takes are held with interrupts off.
#include "guest/kernel/call.h"
#include "guest/kernel/rcu/rcu.h"
#include "guest/kernel/sched/run_queue.h"
#include "guest/kernel/sched/smp_call.h"
#include "guest/kernel/sched/time.h"

namespace sipi {
namespace {

void TimerInterrupt(PerCpu& self) {
  RunQueue& queue = *self.run_queue;
  self.timer_fired++;
  self.timer_armed_ticks = 0;
  RunTimers(self);
  if (queue.tick_ticks != 0 && platform::NowTicks() >= queue.tick_ticks) {
    queue.tick_ticks = 0;
    SchedTick(self);
    rcu::SchedClockIrq(self, self.current == queue.idle);
  }
}

void RunSoftirq(PerCpu& self) {
  RunQueue& queue = *self.run_queue;
  queue.in_softirq = true;
  ++self.current->preempt_count;
  platform::IrqEnable();
  rcu::RunCore(self);
  platform::IrqDisable();
  --self.current->preempt_count;  // whoever was interrupted is preempted at the interrupt's end
  queue.in_softirq = false;
}

}  // namespace

void HandleServiceInterrupt(PerCpu& self, Vector vector) {
  ++self.irq_depth;
  rcu::IrqEnter(self);
  switch (vector.value) {
    case abi::kTimerVector:
      TimerInterrupt(self);
      break;
    case abi::kCallVector:
      RunCalled(self);
      break;
    case abi::kCallSingleVector:
      RunCallQueue(self);
      break;
    case abi::kRescheduleVector:
      TakeRequest(self);
      break;
    default:
      SIPI_PANIC("interrupt at a vector that nobody asked for");
  }
  if (--self.irq_depth == 0 && !self.run_queue->in_softirq && rcu::CorePending(self)) {
    RunSoftirq(self);
  }
  if (vector.value == abi::kTimerVector || rcu::NeedsTick(self)) ArmNextTimer(self);
  rcu::IrqExit(self);
}

}  // namespace sipi
