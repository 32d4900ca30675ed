// What a CPU does that has nothing to do.
#include "guest/kernel/hotplug/ap_idle.h"
#include "guest/kernel/rcu/rcu.h"
#include "guest/kernel/sched/run_queue.h"
#include "guest/kernel/sched/time.h"

namespace sipi {
namespace {

[[noreturn]] void Die(PerCpu& self) {
  RunQueue& queue = *self.run_queue;
  queue.lock.Lock(*self.kernel);
  queue.runs = false;
  queue.lock.Unlock();
  IdleDead(self);
}

}  // namespace

void IdleLoop(PerCpu& self) {
  for (;;) {
    platform::IrqDisable();
    while (self.need_resched == 0) {
      if (self.slot->online == 0) Die(self);
      if (PullThread(self)) continue;
      rcu::IdleEnter(self);
      ArmForIdle(self);
      platform::HaltEnabled();
      rcu::IdleExit(self);
    }
    SwitchThread(/*preempted=*/false);
  }
}

}  // namespace sipi
