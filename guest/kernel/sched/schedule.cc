// The switch: which thread comes next, and how the running one leaves.
#include "guest/kernel/rcu/rcu.h"
#include "guest/kernel/sched/run_queue.h"
#include "guest/kernel/sched/time.h"

namespace sipi {
namespace {

constexpr auto kBlocked = static_cast<uint32_t>(ThreadState::kBlocked);
constexpr auto kDead = static_cast<uint32_t>(ThreadState::kDead);
constexpr auto kRunnable = static_cast<uint32_t>(ThreadState::kRunnable);
constexpr auto kWaking = static_cast<uint32_t>(ThreadState::kWaking);

// The model lets this need preempt the running thread.
bool PreemptsNow(Kernel& kernel, uint32_t need) {
  if (need != static_cast<uint32_t>(Resched::kNow)) return false;
  const abi::Preemption model = kernel.kernel_knobs().preemption;
  return model == abi::Preemption::kFull || model == abi::Preemption::kLazy;
}

uint32_t WaitingAbove(const RunQueue& queue, Priority priority) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < static_cast<uint32_t>(priority); ++i) count += queue.waiting_count[i];
  return count;
}

// What becomes of the running thread. The lock is held.
void PutRunning(PerCpu& self, RunQueue& queue, Thread& current, bool preempted) {
  queue.previous_leaves = false;
  if (&current == queue.idle) return;
  if (!preempted) {
    const uint32_t state = current.state.Load(std::memory_order_acquire);
    // Whoever wakes it takes this lock to see whether it has gone.
    if (state == kBlocked || state == kDead) {
      current.on_queue = kOnNone;
      return;
    }
  }
  if (!MayRunOn(current, queue, self.cpu.value)) {
    current.on_queue = kMoving;
    queue.previous_leaves = true;
    return;
  }
  // A thread that loses its CPU to a more urgent one comes first among its equals, for what is left
  // of its turn.
  const bool turn_over = TurnIsOver(queue);
  if (turn_over) queue.current_since_ticks = platform::NowTicks();
  Link(queue, current, !turn_over && WaitingAbove(queue, current.priority) != 0);
}

Thread& PickNext(RunQueue& queue) {
  for (ThreadList& list : queue.waiting) {
    if (list.first == nullptr) continue;
    Thread& thread = *list.first;
    Unlink(queue, thread);
    return thread;
  }
  return *queue.idle;
}

// More urgent threads in between do not begin a turn anew: where they come often, the others of its
// priority would wait for ever.
bool BeginsTurn(const RunQueue& queue, const Thread& current, const Thread& next, bool preempted) {
  const bool interrupted = preempted && next.priority < current.priority;
  return &current == queue.idle || !(interrupted || current.priority < next.priority);
}

}  // namespace

void SwitchThread(bool preempted) {
  PerCpu& self = platform::ThisCpu();
  RunQueue& queue = *self.run_queue;
  Thread& current = *self.current;
  rcu::NoteContextSwitch(self, current, preempted);
  queue.lock.Lock(*self.kernel);
  self.need_resched = 0;
  PutRunning(self, queue, current, preempted);
  Thread& next = PickNext(queue);
  queue.tick_wanted = WaitingAbove(queue, Priority::kIdle) != 0;
  if (&next == &current) {
    queue.lock.Unlock();
    if (queue.tick_wanted) ArmNextTimer(self);
    return;
  }
  queue.current = &next;
  if (BeginsTurn(queue, current, next, preempted)) {
    queue.current_since_ticks = platform::NowTicks();
  }
  queue.previous = &current;
  if (&next == queue.idle && queue.active) queue.idles.Store(1, std::memory_order_relaxed);
  if (&current == queue.idle) queue.idles.Store(0, std::memory_order_relaxed);
  if (self.kernel->kernel_knobs().trace_threads != 0)
    platform::Trace(abi::TraceEvent::kThread, static_cast<uint16_t>(self.cpu.value), next.number);
  platform::SetCurrentThread(&next);
  platform::SwitchContext(current.context, next.context);
  FinishSwitch();
}

void FinishSwitch() {
  PerCpu& self = platform::ThisCpu();
  RunQueue& queue = *self.run_queue;
  Thread& left = *queue.previous;
  const bool leaves = queue.previous_leaves;
  queue.previous = nullptr;
  queue.lock.Unlock();  // from here on another CPU may run it
  if (leaves) PlaceThread(left);
  if (queue.tick_wanted || rcu::NeedsTick(self)) ArmNextTimer(self);
}

void Schedule() {
  Thread& current = *CurrentThread();
  SIPI_ASSERT(current.preempt_count == (current.priority == Priority::kIdle ? 1u : 0u));
  IrqGuard guard;
  SwitchThread(/*preempted=*/false);
}

void YieldThread() { Schedule(); }

void PreemptAfterInterrupt() {
  Thread* const current = CurrentThread();
  if (current == nullptr || current->preempt_count != 0) return;
  const bool enabled = platform::IrqsEnabled();
  platform::IrqDisable();
  while (PreemptsNow(*current->kernel, platform::ThisCpu().need_resched)) {
    SwitchThread(/*preempted=*/true);
  }
  if (enabled) platform::IrqEnable();
}

void PreemptSlowly() {
  // In an interrupt handler, or where its caller has disabled them, the switch comes later: at the
  // handler's end.
  if (platform::IrqsEnabled()) PreemptAfterInterrupt();
}

void CondResched() {
  Thread& current = *CurrentThread();
  if (platform::ThisCpu().need_resched != 0) {
    const abi::Preemption model = current.kernel->kernel_knobs().preemption;
    if (model == abi::Preemption::kNone || model == abi::Preemption::kVoluntary) return Schedule();
  }
  PreemptGuard guard;
  rcu::CondQs(platform::ThisCpu());
}

void MightResched() {
  const Thread& current = *CurrentThread();
  if (current.kernel->kernel_knobs().preemption != abi::Preemption::kVoluntary) return;
  if (platform::ThisCpu().need_resched != 0) Schedule();
}

void ChangeState(Thread& current, ThreadState to) {
  uint32_t expected = kRunnable;
  const auto wanted = static_cast<uint32_t>(to);
  while (!current.state.Ref().CompareExchange(expected, wanted, std::memory_order_seq_cst)) {
    if (expected == wanted) return;
    // Whoever wakes it from its last wait has interrupts off, and has not finished.
    (void)platform::SpinPolitely(
        current.state.Ref(), [](uint32_t state) { return state != kWaking; }, 20,
        platform::NoDeadline());
    expected = kRunnable;
  }
}

void PrepareToBlock(Thread& current) { ChangeState(current, ThreadState::kBlocked); }

void CancelBlock(Thread& current) {
  uint32_t expected = kBlocked;
  (void)current.state.Ref().CompareExchange(expected, kRunnable, std::memory_order_seq_cst);
}

}  // namespace sipi
