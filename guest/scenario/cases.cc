#include "guest/scenario/cases.h"

#include "guest/kernel/alloc.h"
#include "guest/kernel/call.h"
#include "guest/kernel/rcu/read_side.h"
#include "guest/kernel/rcu/state.h"
#include "guest/kernel/sched/smp_call.h"
#include "guest/kernel/sched/time.h"
#include "guest/scenario/scenario.h"

namespace sipi {
namespace {

struct HoleCall {
  CountedHead head;
  uint32_t called_on = ~0u;
};

void CallHere(void* argument) {
  auto& call = *static_cast<HoleCall*>(argument);
  PerCpu& self = platform::ThisCpu();
  call.called_on = self.cpu.value;
  rcu::Call(*self.kernel, call.head, CountRun);
}

// A reader on the last CPU, held for some jiffies.
struct LastReader {
  Completion inside;
  platform::Atomic<uint32_t> reads{0};
};

void HoldForJiffies(void* argument) {
  auto& reader = *static_cast<LastReader*>(argument);
  Kernel& kernel = *CurrentThread()->kernel;
  rcu::ReadLock();
  reader.reads.Store(1, std::memory_order_seq_cst);
  reader.inside.Complete(kernel);
  platform::DelayUs(static_cast<uint32_t>(5 * JiffyNs(kernel) / 1000));
  reader.reads.Store(0, std::memory_order_seq_cst);
  rcu::ReadUnlock();
}

void ReaderIsWaitedFor(Kernel& kernel, uint32_t cpu, void (*wait)(Kernel&)) {
  auto& reader = *AllocateArray<LastReader>(kernel, 1);
  SpawnThread(kernel,
              {.name = "reader", .function = HoldForJiffies, .argument = &reader, .cpu = cpu});
  reader.inside.Wait();
  wait(kernel);
  SIPI_ASSERT(reader.reads.Load(std::memory_order_seq_cst) == 0);
}

bool Expedites(Kernel& kernel) {
  const uint64_t before = rcu::ExpSeq(kernel);
  rcu::Synchronize(kernel);
  return rcu::ExpSeq(kernel) != before;
}

}  // namespace

void CountRun(rcu::Head& head) {
  static_cast<CountedHead&>(head).runs.FetchAdd(1, std::memory_order_seq_cst);
}

void CaseHole(Kernel& kernel) {
  constexpr uint32_t kHole = 3;
  const uint32_t cpus = kernel.params->cpu_count;
  auto* calls = AllocateArray<HoleCall>(kernel, cpus);
  for (uint32_t cpu = 0; cpu < cpus; ++cpu) {
    SIPI_ASSERT(CpuOnline(kernel, CpuNumber(cpu)) == (cpu != kHole));
    const bool served = CallFunctionSingle(kernel, CpuNumber(cpu), CallHere, &calls[cpu], true);
    SIPI_ASSERT(served == (cpu != kHole));
    SIPI_ASSERT(calls[cpu].called_on == (served ? cpu : ~0u));
  }
  rcu::Barrier(kernel);
  for (uint32_t cpu = 0; cpu < cpus; ++cpu) {
    SIPI_ASSERT(RunsOf(calls[cpu].head) == (cpu != kHole ? 1u : 0u));
  }
  // The last CPU's alone: nobody else's make the barrier wait.
  auto& alone = *AllocateArray<HoleCall>(kernel, 1);
  SIPI_ASSERT(CallFunctionSingle(kernel, CpuNumber(cpus - 1), CallHere, &alone, true));
  rcu::Barrier(kernel);
  SIPI_ASSERT(RunsOf(alone.head) == 1);
  CallEach(kernel.percpu(kBootCpu));
  SIPI_ASSERT(kernel.result->ipi_answers == cpus - 2);  // all but the hole and the caller
  ReaderIsWaitedFor(kernel, cpus - 1, rcu::Synchronize);
  ReaderIsWaitedFor(kernel, cpus - 1, rcu::SynchronizeExpedited);
}

void CaseNesting(Kernel& kernel) {
  constexpr uint32_t kDepth = 3;
  SIPI_ASSERT(!rcu::GpIsExpedited(kernel));  // boot is over
  for (uint32_t i = 0; i < kDepth; ++i) rcu::ExpediteGp(kernel);
  for (uint32_t i = 0; i < kDepth; ++i) {
    SIPI_ASSERT(rcu::GpIsExpedited(kernel) && Expedites(kernel));
    rcu::UnexpediteGp(kernel);
  }
  SIPI_ASSERT(!rcu::GpIsExpedited(kernel) && !Expedites(kernel));
  rcu::UnexpediteGp(kernel);  // one too many: reported, and nothing else
  SIPI_ASSERT(!rcu::GpIsExpedited(kernel));
  rcu::ExpediteGp(kernel);
  SIPI_ASSERT(rcu::GpIsExpedited(kernel) && Expedites(kernel));
  kernel.rcu->normal_knob.Store(1, std::memory_order_seq_cst);
  SIPI_ASSERT(rcu::GpIsNormal(kernel) && !Expedites(kernel));
  const uint64_t before = rcu::ExpSeq(kernel);
  rcu::SynchronizeExpedited(kernel);
  SIPI_ASSERT(rcu::ExpSeq(kernel) == before);
  kernel.rcu->normal_knob.Store(0, std::memory_order_seq_cst);
  SIPI_ASSERT(Expedites(kernel));
  rcu::UnexpediteGp(kernel);
}

void RunCase(Kernel& kernel) {
  switch (kernel.params->scenario_value) {
    case 5:
      return CaseHole(kernel);
    case 7:
      return CaseExpeditedStep(kernel);
    case 9:
      return CaseCallbacksLeft(kernel);
    case 10:
      return CaseBootStages(kernel);
    case 11:
      return CaseFailures(kernel);
    case 12:
      return CaseReaderLeft(kernel);
    case 13:
      return CaseNesting(kernel);
    default:
      SIPI_PANIC("there is no such case");
  }
}

}  // namespace sipi
