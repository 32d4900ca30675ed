// Function calls on one CPU: a list without a lock that anybody pushes to and the CPU takes as a
// whole. A CPU that goes offline closes its list by the same exchange by which it takes what is in
// it: a caller's entry is either taken, and runs, or finds the list closed. Then it stays until
// those have sent their interrupts whose entries it may have taken before: so none goes to a CPU
// that is dead, however long a caller's own CPU stood still in between.
#include "guest/kernel/sched/smp_call.h"

#include "guest/kernel/apic.h"
#include "guest/kernel/sched/run_queue.h"

namespace sipi {
namespace {

constexpr uint32_t kSliceUs = 20;

bool NotQueued(uint32_t queued) { return queued == 0; }

// Until the entry's function has run. Interrupts are on, so that calls to this CPU go on.
void WaitFor(Kernel& kernel, CallEntry& entry) {
  SIPI_ASSERT(
      platform::SpinPolitely(entry.queued.Ref(), NotQueued, kSliceUs, WaitedForEver(kernel)));
}

// False: the list is closed. Interrupts off.
bool Push(PerCpu& self, RunQueue& target, CallEntry& entry) {
  uint64_t head = target.calls.Load(std::memory_order_relaxed);
  do {
    if (head == kCallsClosed) return false;
    entry.next = head;
  } while (!target.calls.Ref().CompareExchange(head, reinterpret_cast<uint64_t>(&entry),
                                               std::memory_order_seq_cst));
  if (head == 0) SendQuietIpi(self, target.area->cpu, Vector(abi::kCallSingleVector));
  return true;
}

// The oldest first.
void RunEntries(uint64_t youngest) {
  CallEntry* first = nullptr;
  while (youngest != 0) {
    auto* entry = reinterpret_cast<CallEntry*>(youngest);
    youngest = entry->next;
    entry->next = reinterpret_cast<uint64_t>(first);
    first = entry;
  }
  while (first != nullptr) {
    CallEntry& entry = *first;
    first = reinterpret_cast<CallEntry*>(entry.next);
    entry.function(entry.argument);
    entry.queued.Store(0, std::memory_order_release);  // its owner's again
  }
}

}  // namespace

bool CallFunctionSingle(Kernel& kernel, CpuNumber cpu, void (*function)(void*), void* argument,
                        bool wait) {
  PreemptGuard preempt;
  PerCpu& self = platform::ThisCpu();
  if (self.cpu == cpu) {
    IrqGuard irq;
    function(argument);
    return true;
  }
  CallEntry& entry = wait ? CurrentThread()->call : self.run_queue->own_call;
  bool queued = false;
  for (bool claimed = false; !claimed;) {
    WaitFor(kernel, entry);
    IrqGuard irq;  // what runs behind interrupts makes calls too
    if (entry.queued.Load(std::memory_order_acquire) != 0) continue;
    claimed = true;
    entry.function = function;
    entry.argument = argument;
    entry.queued.Store(1, std::memory_order_relaxed);
    RunQueue& target = QueueOf(kernel, cpu.value);
    target.callers.FetchAdd(1, std::memory_order_seq_cst);
    queued = Push(self, target, entry);
    target.callers.FetchAdd(~0u, std::memory_order_seq_cst);
    if (!queued) entry.queued.Store(0, std::memory_order_relaxed);
  }
  if (queued && wait) WaitFor(kernel, entry);
  return queued;
}

void RunCallQueue(PerCpu& self) {
  platform::AtomicRef<uint64_t> calls = self.run_queue->calls.Ref();
  uint64_t head = calls.Load(std::memory_order_relaxed);
  while (head != 0 && head != kCallsClosed) {
    if (!calls.CompareExchange(head, 0, std::memory_order_seq_cst)) continue;
    RunEntries(head);
    head = calls.Load(std::memory_order_relaxed);
  }
}

void OpenCallQueue(PerCpu& self) { self.run_queue->calls.Exchange(0, std::memory_order_seq_cst); }

void CloseCallQueue(PerCpu& self) {
  RunQueue& queue = *self.run_queue;
  const uint64_t head = queue.calls.Exchange(kCallsClosed, std::memory_order_seq_cst);
  if (head != kCallsClosed) RunEntries(head);
  const auto none = [](uint32_t callers) { return callers == 0; };
  SIPI_ASSERT(
      platform::SpinPolitely(queue.callers.Ref(), none, kSliceUs, WaitedForEver(*self.kernel)));
}

}  // namespace sipi
