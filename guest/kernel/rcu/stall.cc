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

const char* NameOf(uint32_t gp_state) {
  switch (static_cast<GpState>(gp_state)) {
    case GpState::kIdle:
      return "RCU_GP_IDLE";
    case GpState::kWaitGps:
      return "RCU_GP_WAIT_GPS";
    case GpState::kDoneGps:
      return "RCU_GP_DONE_GPS";
    case GpState::kOnOff:
      return "RCU_GP_ONOFF";
    case GpState::kInit:
      return "RCU_GP_INIT";
    case GpState::kWaitFqs:
      return "RCU_GP_WAIT_FQS";
    case GpState::kDoingFqs:
      return "RCU_GP_DOING_FQS";
    case GpState::kCleanup:
      return "RCU_GP_CLEANUP";
    case GpState::kCleaned:
      return "RCU_GP_CLEANED";
  }
  return "?";
}

uint64_t MsOf(const State& state, uint64_t jiffies) {
  return jiffies * JiffyNs(*state.kernel) / 1'000'000;
}

// Is there something for the kthread to do, and it does not run? Linux calls that starved after two
// seconds (kernel/rcu/tree_stall.h, rcu_check_gp_kthread_starvation).
void ReportStarvation(State& state, uint64_t now) {
  const uint64_t asked = state.gp_request_jiffies.Load(std::memory_order_relaxed);
  const uint64_t active = state.gp_activity_jiffies.Load(std::memory_order_relaxed);
  const uint64_t since = asked < active ? active : asked;
  const uint64_t two_seconds = 2 * uint64_t{state.kernel->kernel_knobs().hz};
  const uint64_t most = state.stall_jiffies < two_seconds ? state.stall_jiffies : two_seconds;
  if (now < since + most || state.gp_thread == nullptr) return;
  const uint32_t cpu = state.gp_thread->cpu.Load(std::memory_order_relaxed);
  const uint64_t ms = MsOf(state, now - since);
  platform::Trace(abi::TraceEvent::kGpStarved, static_cast<uint16_t>(cpu),
                  static_cast<uint32_t>(ms));
  TextLine line;
  line.Add("rcu: grace-period kthread starved for ").Add(ms).Add(" ms: on CPU ").Add(cpu);
  line.Add(", ").Add(NameOf(state.gp_state.Load(std::memory_order_relaxed))).Print();
}

}  // namespace

void ExpectProgress(State& state, uint64_t now_jiffies) {
  state.next_stall_jiffies.Store(now_jiffies + state.stall_jiffies, std::memory_order_relaxed);
}

void CheckStall(State& state) {
  if (state.stall_jiffies == 0) return;
  const uint64_t gp_seq = state.gp_seq.Load(std::memory_order_acquire);
  const bool runs = SeqState(gp_seq) != 0;
  if (!runs && !GpFlagIsSet(state, kGpFlagInit)) return;
  uint64_t next = state.next_stall_jiffies.Load(std::memory_order_acquire);
  const uint64_t start = state.gp_start_jiffies.Load(std::memory_order_acquire);
  const uint64_t now = Jiffies(*state.kernel);
  if (now < next) return;
  // All of one grace period, as in Linux's check_cpu_stall: a CPU may lose its core on the way.
  if (state.gp_seq.Load(std::memory_order_acquire) != gp_seq) return;
  const uint64_t again = now + 3 * state.stall_jiffies + 3;
  if (!state.next_stall_jiffies.Ref().CompareExchange(next, again, std::memory_order_acq_rel)) {
    return;  // somebody else does
  }
  if (runs) {
    const uint64_t ms = MsOf(state, now - start);
    for (Node& leaf : state.leaves()) ReportLeaf(state, leaf, Kind::kNormal, ms);
  }
  ReportStarvation(state, now);
}

void ReportExpStall(State& state, uint64_t waited_ms) {
  for (Node& leaf : state.leaves()) ReportLeaf(state, leaf, Kind::kExpedited, waited_ms);
}

}  // namespace sipi::rcu
