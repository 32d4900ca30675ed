// Grace periods that do not end, of either kind: which CPU, or which reader that lost its CPU, does
// not let them. An event and a line on the serial port for each.
#include "guest/kernel/rcu/exp.h"
#include "guest/kernel/rcu/text.h"

namespace sipi::rcu {
namespace {

enum class Kind { kNormal, kExpedited };

void Report(Kind kind, uint32_t cpu, uint64_t ms, const char* reader) {
  platform::Trace(abi::TraceEvent::kRcuStall, static_cast<uint16_t>(cpu),
                  static_cast<uint32_t>(ms));
  TextLine line;
  line.Add("rcu: ").Add(kind == Kind::kExpedited ? "expedited " : "");
  line.Add("grace period stalls for ").Add(ms).Add(" ms: ");
  if (reader == nullptr) {
    line.Add("CPU ").Add(cpu).Add(" has not been quiescent");
  } else {
    line.Add("reader '").Add(reader).Add("' was switched out on CPU ").Add(cpu);
  }
  line.Print();
}

void ReportLeaf(State& state, Node& leaf, Kind kind, uint64_t ms) {
  // Who it is changes under our eyes; the lock keeps the list whole, and the line is printed
  // without it.
  struct Culprit {
    const char* name = nullptr;
    uint32_t cpu = 0;  // where it last ran
  };
  constexpr uint32_t kMost = 8;
  Culprit readers[kMost];
  uint32_t count = 0;
  uint64_t waits = 0;
  {
    IrqSpinGuard guard(*state.kernel, leaf.lock);
    const bool expedited = kind == Kind::kExpedited;
    waits = (expedited ? leaf.expmask : leaf.qsmask).Load(std::memory_order_relaxed);
    for (Thread* each = expedited ? leaf.exp_tasks : leaf.gp_tasks;
         each != nullptr && count < kMost; each = each->rcu.next_blocked) {
      readers[count++] = {each->name, each->cpu.Load(std::memory_order_relaxed)};
    }
  }
  ForEachCpu(leaf, waits, [&](CpuNumber cpu) { Report(kind, cpu.value, ms, nullptr); });
  for (uint32_t i = 0; i < count; ++i) Report(kind, readers[i].cpu, ms, readers[i].name);
}

}  // namespace

void CheckStall(State& state) {
  if (state.stall_jiffies == 0) return;
  const uint64_t now = Jiffies(*state.kernel);
  if (now < state.next_stall_jiffies) return;
  state.next_stall_jiffies = now + 3 * state.stall_jiffies + 3;
  const uint64_t age = now - state.gp_start_jiffies.Load(std::memory_order_relaxed);
  const uint64_t ms = age * JiffyNs(*state.kernel) / 1'000'000;
  for (Node& leaf : state.leaves()) ReportLeaf(state, leaf, Kind::kNormal, ms);
}

void ReportExpStall(State& state, uint64_t waited_ms) {
  for (Node& leaf : state.leaves()) ReportLeaf(state, leaf, Kind::kExpedited, waited_ms);
}

}  // namespace sipi::rcu
