#include "guest/kernel/call.h"

#include "guest/kernel/apic.h"
#include "guest/kernel/print.h"
#include "guest/kernel/sched/run_queue.h"
#include "guest/kernel/wait.h"

namespace sipi {
namespace {

void Do(PerCpu& self, CallFunction function) {
  switch (function) {
    case CallFunction::kNone:
    case CallFunction::kAnswer:
      return;
    case CallFunction::kCacheSetup:
      return SetUpCaches();
    case CallFunction::kPrint:
      return PrintShare(self);
    case CallFunction::kHalt:
      platform::HaltForever();
  }
}

void WaitForAnswers(PerCpu& self) {
  Kernel& kernel = *self.kernel;
  uint32_t before = kernel.call_pending.Load(std::memory_order_seq_cst);
  while (before != 0) {
    const bool all = WaitFor(
        self, kernel.call_pending.Ref(), [](uint32_t value) { return value == 0; },
        WaitedForEver(kernel), abi::WaitMode::kHalt);
    if (all) return;
    const uint32_t now = kernel.call_pending.Load(std::memory_order_seq_cst);
    SIPI_ASSERT(now != before);  // some CPU answered, or nobody ever will
    before = now;
  }
}

platform::AtomicRef<uint32_t> Requested(Kernel& kernel, CpuNumber cpu) {
  return platform::AtomicRef<uint32_t>(kernel.slot(cpu).call_requested);
}

// Asks a CPU to do its part; false if it is not online. A CPU that goes down meanwhile clears
// `online` and then looks for a request, here the request is stored before `online` is looked at
// again: so either it answers on its way down, or it is not waited for.
bool Request(Kernel& kernel, CpuNumber cpu) {
  platform::AtomicRef<uint32_t> online(kernel.slot(cpu).online);
  if (online.Load(std::memory_order_seq_cst) == 0) return false;
  Requested(kernel, cpu).Exchange(1, std::memory_order_seq_cst);
  if (online.Load(std::memory_order_seq_cst) != 0) return true;
  return Requested(kernel, cpu).Exchange(0, std::memory_order_seq_cst) == 0;
}

void Answer(PerCpu& self) {
  if (self.kernel->call_pending.FetchAdd(~0u, std::memory_order_seq_cst) == 1) {
    NotifyCpu(self, kBootCpu);
  }
}

void Post(Kernel& kernel, CallFunction function, uint32_t count) {
  kernel.call_pending.Store(count, std::memory_order_seq_cst);
  kernel.call_function.Store(static_cast<uint32_t>(function), std::memory_order_seq_cst);
}

}  // namespace

void SetUpCaches() {
  platform::CacheSetup();
  platform::Charge(abi::Charge::kCacheSetup);
  platform::Trace(abi::TraceEvent::kCacheSetup, 0, 0);
}

void CallAll(PerCpu& self, CallFunction function) {
  Kernel& kernel = *self.kernel;
  Post(kernel, function, 0);
  uint32_t count = 0;
  for (uint32_t i = 0; i < kernel.params->order_count; ++i) {
    count += Request(kernel, CpuNumber(kernel.order[i])) ? 1u : 0u;
  }
  // Added, not stored: some CPU may have been told already, by an IPI that was not meant so.
  kernel.call_pending.FetchAdd(count, std::memory_order_seq_cst);
  SendIpiAllButSelf(self, Vector(abi::kCallVector));
  Do(self, function);
  WaitForAnswers(self);
}

void CallEach(PerCpu& self) {
  Kernel& kernel = *self.kernel;
  for (uint32_t i = 0; i < kernel.params->order_count; ++i) {
    const CpuNumber cpu(kernel.order[i]);
    Post(kernel, CallFunction::kAnswer, 1);
    if (!Request(kernel, cpu)) continue;
    SendIpi(self, cpu, Vector(abi::kCallVector));
    WaitForAnswers(self);
    kernel.result->ipi_answers++;
  }
}

void RunCalled(PerCpu& self) {
  Kernel& kernel = *self.kernel;
  // An IPI that comes twice, or to a CPU that nobody asked, does nothing.
  if (Requested(kernel, self.cpu).Exchange(0, std::memory_order_seq_cst) == 0) return;
  const auto function =
      static_cast<CallFunction>(kernel.call_function.Load(std::memory_order_seq_cst));
  Do(self, function);
  Answer(self);
}

void AnswerOnTheWayDown(PerCpu& self) {
  if (Requested(*self.kernel, self.cpu).Exchange(0, std::memory_order_seq_cst) != 0) Answer(self);
}

void HandleInterrupt(PerCpu& self, Vector vector) {
  if (vector.value == abi::kTimerVector && self.timer_mask_when_fired != 0) {
    platform::ApicWrite(apic::Reg::kLvtTimer, self.timer_mask_when_fired);
  }
  EndOfInterrupt();
  if (self.run_queue != nullptr) return HandleServiceInterrupt(self, vector);
  switch (vector.value) {
    case abi::kTimerVector:
      self.timer_fired++;
      self.timer_armed_ticks = 0;
      return;
    case abi::kCallVector:
      return RunCalled(self);
    default:
      SIPI_PANIC("interrupt at a vector that nobody asked for");
  }
}

}  // namespace sipi
