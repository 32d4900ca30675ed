// Making threads, and the scheduler's set-up for the machine and for a CPU.
#include "guest/kernel/alloc.h"
#include "guest/kernel/rcu/read_side.h"
#include "guest/kernel/sched/run_queue.h"
#include "guest/kernel/sched/smp_call.h"

namespace sipi {
namespace {

// The name with the index where the '%' stands.
void SetName(Thread& thread, const char* name, uint32_t index) {
  char* at = thread.name;
  char* const end = thread.name + sizeof(thread.name) - 1;
  for (; *name != 0 && at != end; ++name) {
    if (*name != '%') {
      *at++ = *name;
      continue;
    }
    uint32_t unit = 1;
    while (index / unit >= 10) unit *= 10;
    for (; unit != 0 && at != end; unit /= 10) *at++ = static_cast<char>('0' + index / unit % 10);
  }
  *at = 0;
}

void ThreadMain(void* argument) {
  FinishSwitch();
  platform::IrqEnable();
  const Thread& self = *static_cast<Thread*>(argument);
  self.function(self.argument);
  ExitThread();
}

void EndOfSleep(void* thread) { WakeUp(*static_cast<Thread*>(thread)); }

Thread& MakeThread(Kernel& kernel, const ThreadSpec& spec) {
  Thread& thread = *AllocateArray<Thread>(kernel, 1);
  SetName(thread, spec.name, spec.index);
  thread.kernel = &kernel;
  thread.function = spec.function;
  thread.argument = spec.argument;
  thread.priority = spec.priority;
  thread.number = kernel.scheduler->threads.FetchAdd(1, std::memory_order_relaxed);
  thread.per_cpu = spec.cpu != Thread::kAnyCpu;
  thread.affinity.Store(spec.cpu, std::memory_order_relaxed);
  thread.rcu.reader_kind = rcu::ReaderKindOf(kernel.kernel_knobs());
  thread.timer.function = EndOfSleep;
  thread.timer.argument = &thread;
  thread.older = reinterpret_cast<Thread*>(kernel.scheduler->last_thread.Exchange(
      reinterpret_cast<uint64_t>(&thread), std::memory_order_acq_rel));
  return thread;
}

// A thread that a CPU is in already, or enters by itself: it runs, and is on no list.
Thread& MakeRunning(Kernel& kernel, const ThreadSpec& spec) {
  Thread& thread = MakeThread(kernel, spec);
  thread.cpu.Store(spec.cpu, std::memory_order_relaxed);
  thread.on_queue = kOnQueue;
  return thread;
}

void IdleMain(void*) {
  platform::IrqDisable();
  IdleLoop(platform::ThisCpu());
}

}  // namespace

Thread& SpawnThread(Kernel& kernel, const ThreadSpec& spec) {
  Thread& thread = MakeThread(kernel, spec);
  platform::InitContext(thread.context, platform::AllocateStack(kernel), ThreadMain, &thread);
  {
    PreemptGuard guard;
    const uint32_t here = platform::ThisCpu().cpu.value;
    thread.cpu.Store(spec.cpu == Thread::kAnyCpu ? here : spec.cpu, std::memory_order_relaxed);
  }
  thread.state.Store(static_cast<uint32_t>(ThreadState::kBlocked), std::memory_order_release);
  if (!spec.asleep) WakeUp(thread);
  return thread;
}

void ExitThread() {
  ChangeState(*CurrentThread(), ThreadState::kDead);
  Schedule();
  SIPI_PANIC("a dead thread runs");
}

void SchedInit(Kernel& kernel) {
  auto& scheduler = *AllocateArray<Scheduler>(kernel, 1);
  kernel.scheduler = &scheduler;
  scheduler.queues = AllocateArray<RunQueue>(kernel, kernel.params->cpu_count);
  scheduler.ticks_per_jiffy = platform::TicksOfUs(1'000'000) / kernel.kernel_knobs().hz;
  scheduler.boot_ticks = platform::NowTicks();
  PerCpu& self = kernel.percpu(kBootCpu);
  RunQueue& queue = scheduler.queues[0];
  Thread& init = MakeRunning(kernel, {.name = "init", .cpu = 0});
  init.per_cpu = false;  // bound for as long as it likes
  scheduler.init = &init;
  Thread& idle =
      MakeRunning(kernel, {.name = "idle/%", .index = 0, .cpu = 0, .priority = Priority::kIdle});
  idle.preempt_count = 1;
  idle.function = IdleMain;
  platform::InitContext(idle.context, platform::AllocateStack(kernel), ThreadMain, &idle);
  queue.area = &self;
  queue.idle = &idle;
  queue.current = &init;
  queue.current_since_ticks = scheduler.boot_ticks;
  queue.runs = true;
  queue.active = true;
  platform::SetCurrentThread(&init);
  self.run_queue = &queue;
  OpenCallQueue(self);
  InitStop(kernel);
  queue.stopper = &SpawnThread(kernel, {.name = "migration/%",
                                        .index = 0,
                                        .function = StopperMain,
                                        .argument = &queue,
                                        .cpu = 0,
                                        .priority = Priority::kStop,
                                        .asleep = true});
}

void SchedPrepareCpu(Kernel& kernel, CpuNumber cpu) {
  RunQueue& queue = QueueOf(kernel, cpu.value);
  PerCpu& area = kernel.percpu(cpu);
  if (queue.idle == nullptr) {
    queue.area = &area;
    queue.idle = &MakeRunning(
        kernel,
        {.name = "idle/%", .index = cpu.value, .cpu = cpu.value, .priority = Priority::kIdle});
    queue.stopper = &SpawnThread(kernel, {.name = "migration/%",
                                          .index = cpu.value,
                                          .function = StopperMain,
                                          .argument = &queue,
                                          .cpu = cpu.value,
                                          .priority = Priority::kStop,
                                          .asleep = true});
  }
  // The CPU is in its idle thread from its first instruction on.
  queue.idle->preempt_count = 1;
  queue.timer_mode_set = false;
  queue.tick_ticks = 0;
  queue.next_timer_ticks = kNoTimer;
  area.run_queue = &queue;
  area.current = queue.idle;
  area.need_resched = 0;
  area.irq_depth = 0;
}

void SchedStartCpu(PerCpu& self) {
  RunQueue& queue = *self.run_queue;
  IrqSpinGuard guard(*self.kernel, queue.lock);
  queue.current = queue.idle;
  queue.current_since_ticks = platform::NowTicks();
  queue.runs = true;
  // An interrupt that was on its way when the CPU went is lost with it.
  queue.request.Store(0, std::memory_order_relaxed);
  // Its own threads may have been waiting for it.
  SetNeedResched(self);
}

}  // namespace sipi
