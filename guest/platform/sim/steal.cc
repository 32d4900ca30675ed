// Cores that other guests take away for a while (Options::steal). A pulse takes place whatever the
// CPU does; it is felt by one that executes, or wants to go on before it is over.
#include "guest/platform/sim/machine.h"

namespace sipi::sim {

void Machine::PowerOnSteal() {
  for (Cpu& cpu : cpus_) {
    cpu.next_steal_ns = now_ns_ + cpu.steal_random.Below(options_.steal.period_ns);
  }
}

// Puts the CPU off by the pulses that began before its time. `waited`: it has just been woken, and
// loses only what is left of a pulse.
void Machine::LoseCore(Cpu& cpu, bool waited) {
  const Steal& steal = options_.steal;
  while (cpu.next_steal_ns <= cpu.now_ns) {
    const uint64_t pulse_ns =
        steal.min_ns + cpu.steal_random.Below(steal.max_ns - steal.min_ns + 1);
    const uint64_t end_ns = cpu.next_steal_ns + pulse_ns;
    cpu.next_steal_ns = end_ns + steal.period_ns / 2 + cpu.steal_random.Below(steal.period_ns + 1);
    const uint64_t back_ns = waited ? end_ns : cpu.now_ns + pulse_ns;
    if (back_ns <= cpu.now_ns) continue;
    const auto track = static_cast<int32_t>(cpu.number);
    Record(track, cpu.now_ns, abi::TraceEvent::kStolenBegin);
    ++stats_.steals;
    stats_.stolen_ns += back_ns - cpu.now_ns;
    cpu.now_ns = back_ns;
    Record(track, cpu.now_ns, abi::TraceEvent::kStolenEnd);
  }
}

}  // namespace sipi::sim
