// The scheduler against itself, on whichever machine: threads that wake each other across all CPUs,
// sleep, wander, are preempted, call functions and stop everything. What must not be is a panic.
#include "guest/kernel/alloc.h"
#include "guest/kernel/sched/smp_call.h"
#include "guest/kernel/sched/time.h"
#include "guest/kernel/sched/worker.h"
#include "guest/scenario/scenario.h"

namespace sipi {
namespace {

constexpr uint32_t kRounds = 8;

struct Threads {
  Kernel* kernel = nullptr;
  Completion ping;
  Completion pong;
  Completion done;
  Mutex mutex;
  uint32_t counted = 0;  // guarded by the mutex
  platform::Atomic<uint32_t> word{0};
  platform::Atomic<uint32_t> calls{0};
  uint32_t called_on = 0;
  Worker worker;
  Work work;
};

void Pong(void* argument) {
  auto& threads = *static_cast<Threads*>(argument);
  for (uint32_t i = 0; i < kRounds; ++i) {
    threads.ping.Wait();
    threads.pong.Complete(*threads.kernel);
  }
  threads.done.Complete(*threads.kernel);
}

void PingPong(Threads& threads, uint32_t cpu) {
  SpawnThread(*threads.kernel,
              {.name = "pong/%", .index = cpu, .function = Pong, .argument = &threads, .cpu = cpu});
  for (uint32_t i = 0; i < kRounds; ++i) {
    threads.ping.Complete(*threads.kernel);
    threads.pong.Wait();
  }
  threads.done.Wait();
}

// Visits every CPU, asleep and awake.
void Wander(void* argument) {
  auto& threads = *static_cast<Threads*>(argument);
  Thread& self = *CurrentThread();
  for (uint32_t cpu = threads.kernel->params->cpu_count; cpu-- > 0;) {
    SIPI_ASSERT(SetAffinity(self, cpu));
    SIPI_ASSERT(platform::ThisCpu().cpu.value == cpu);
    threads.mutex.Lock();
    const uint32_t counted = threads.counted;
    YieldThread();
    threads.counted = counted + 1;
    threads.mutex.Unlock();
    SIPI_ASSERT(platform::ThisCpu().cpu.value == cpu);
  }
  threads.done.Complete(*threads.kernel);
}

void SetWord(void* argument) {
  static_cast<Threads*>(argument)->word.Exchange(1, std::memory_order_seq_cst);
}

// Holds its CPU until somebody takes that from it.
void HoldOn(void* argument) {
  auto& threads = *static_cast<Threads*>(argument);
  threads.ping.Complete(*threads.kernel);
  const auto set = [](uint32_t word) { return word != 0; };
  SIPI_ASSERT(
      platform::SpinPolitely(threads.word.Ref(), set, 100, platform::DeadlineInUs(10'000'000)));
  threads.done.Complete(*threads.kernel);
}

void Preempt(Threads& threads, uint32_t cpu) {
  const abi::Preemption model = threads.kernel->kernel_knobs().preemption;
  if (model != abi::Preemption::kFull && model != abi::Preemption::kLazy) return;
  for (const Priority priority : {Priority::kFifo, Priority::kNormal}) {
    threads.word.Store(0, std::memory_order_seq_cst);
    SpawnThread(*threads.kernel,
                {.name = "hold", .function = HoldOn, .argument = &threads, .cpu = cpu});
    threads.ping.Wait();
    SpawnThread(*threads.kernel, {.name = "set",
                                  .function = SetWord,
                                  .argument = &threads,
                                  .cpu = cpu,
                                  .priority = priority});
    threads.done.Wait();
  }
}

void NoteCall(void* argument) {
  auto& threads = *static_cast<Threads*>(argument);
  threads.called_on = platform::ThisCpu().cpu.value;
  threads.calls.FetchAdd(1, std::memory_order_seq_cst);
}

void NoteWork(Work& work) { work.next = nullptr; }

void Sleep(Kernel& kernel) {
  for (const uint64_t jiffies : {uint64_t{0}, uint64_t{1}, uint64_t{3}}) {
    const uint64_t begin = platform::NowNs();
    SleepJiffies(jiffies);
    SIPI_ASSERT(platform::NowNs() - begin >= jiffies * JiffyNs(kernel));
  }
}

}  // namespace

void RunThreads(Kernel& kernel) {
  auto& threads = *AllocateArray<Threads>(kernel, 1);
  threads.kernel = &kernel;
  const uint32_t cpus = kernel.online_count.Load(std::memory_order_seq_cst);
  SIPI_ASSERT(cpus == kernel.params->cpu_count);
  Sleep(kernel);
  for (uint32_t cpu = 0; cpu < cpus; ++cpu) PingPong(threads, cpu);
  PingPong(threads, Thread::kAnyCpu);
  for (uint32_t i = 0; i < 3; ++i) {
    SpawnThread(kernel, {.name = "wander", .function = Wander, .argument = &threads});
  }
  for (uint32_t i = 0; i < 3; ++i) threads.done.Wait();
  SIPI_ASSERT(threads.counted == 3 * cpus);
  Preempt(threads, cpus - 1);
  for (uint32_t cpu = 0; cpu < cpus; ++cpu) {
    SIPI_ASSERT(CallFunctionSingle(kernel, CpuNumber(cpu), NoteCall, &threads, /*wait=*/true));
    SIPI_ASSERT(threads.called_on == cpu);
  }
  StopMachine(kernel, CpuNumber(cpus - 1), NoteCall, &threads);
  SIPI_ASSERT(threads.calls.Load(std::memory_order_seq_cst) == cpus + 1);
  SIPI_ASSERT(threads.called_on == cpus - 1);
  threads.work.function = NoteWork;
  StartWorker(kernel, threads.worker, {.name = "worker"});
  SIPI_ASSERT(QueueWork(kernel, threads.worker, threads.work));
  FlushWork(kernel, threads.worker, threads.work);
}

}  // namespace sipi
