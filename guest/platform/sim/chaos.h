// What exploration does to a run on top of its costs: other schedules, a store buffer, and faults.
// All of it is drawn from the run's seed.
#pragma once

#include <cstdint>

namespace sipi::sim {

enum class Schedule : uint8_t {
  kTimed,      // as the costs have it
  kRandom,     // any step of any CPU may take longer, by up to 16 us
  kSlowdowns,  // each CPU `slowdown` times slower than the one before it in a random order, of
               // three ranks; at a few random steps the CPU that runs becomes the slowest
  kPct,        // one CPU at a time: of those that could, the one of the highest priority; at a few
               // random steps the one that runs gets a lower one (pct.cc)
  kChosen,     // one CPU at a time, and Options::choices says which (choices.h)
};

enum class Rate : uint8_t { kOff, kRare, kWild };  // none, one in 256, one in 8

struct Chaos {
  bool on = false;
  Schedule schedule = Schedule::kTimed;
  uint32_t preemptions = 0;  // with kChosen: at most so many
  // With kChosen: choices only between the guest's marks (abi::kMarkChoices), and preemptions only
  // before a CPU touches RCU's tree or per-CPU data, a CPU's slot or its list of calls: what is
  // between concerns nobody else that the marked part is about.
  bool marked = false;
  // A function call's interrupt to a CPU that is dead is a violation.
  bool calls_need_life = false;
  uint32_t slowdown = 16;  // with kPriorities; few, where CPUs have ticks to keep up with
  uint32_t change_points = 3;
  uint32_t expected_steps = 1000;  // among which the change points lie
  bool store_buffer = false;       // x86-TSO: plain stores become visible later, in order

  Rate lost_init = Rate::kOff;
  Rate lost_sipi = Rate::kOff;
  Rate late_ap = Rate::kOff;         // it starts up to one and a half handshake timeouts late
  Rate dead_ap = Rate::kOff;         // it hangs at a step of its own
  Rate delayed_ipi = Rate::kOff;     // by up to 200 us
  Rate duplicated_ipi = Rate::kOff;  // SIPIs and fixed IPIs
  Rate stall = Rate::kOff;           // a vCPU is off its core for up to 20 ms
  Rate late_timer = Rate::kOff;      // by up to 1 ms
  // A vCPU is off its core for longer than a handshake may take, by up to half of that; then it
  // goes on. An AP at a step of its own where it holds no lock and nobody counts on it; or any CPU
  // anywhere, twice at most, upon which any other one may be late as well.
  Rate frozen_ap = Rate::kOff;
  Rate frozen = Rate::kOff;
  // A CPU with a scheduler gets a reschedule interrupt that nobody sent: the thread that it runs
  // may lose it at any step. Rare: one step in 2,048, wild: one in 64.
  Rate resched = Rate::kOff;
  // A CPU that touches RCU's tree or per-CPU data, a CPU's slot or its list of calls, or is about
  // to send an interrupt, stays there for up to 4 ms, mostly much less: wide gaps between the steps
  // of two parties that concern each other, where kRandom spreads its short ones over all. Rare:
  // one such access in 128 and interrupt in 32; wild: four times as many.
  Rate rcu_delay = Rate::kOff;

  // A deliberately broken line of the kernel or the platform, in builds that have them; 0: none.
  uint32_t canary = 0;
};

}  // namespace sipi::sim
