// One simulated CPU.
#pragma once

#include <cstdint>

#include "apic/model/init_sipi.h"
#include "apic/model/local_apic.h"
#include "guest/kernel/percpu.h"
#include "guest/platform/sim/fiber.h"
#include "guest/platform/sim/random.h"
#include "guest/platform/sim/simulator.h"
#include "guest/platform/sim/store_buffer.h"

namespace sipi::sim {

class Machine;

//   wait-for-SIPI --SIPI--> in-latency --> executing <--> spinning, delaying, imposed, halted
//        ^                     ^              |
//        +---- in-latency <----+---- INIT ----+--> parked, hung: for good, but for an INIT
enum class CpuState : uint8_t {
  kWaitForSipi,
  kInLatency,  // an INIT's or SIPI's, or held by the machine
  kExecuting,
  kSpinning,  // on a word, or for the trampoline's lock
  kDelaying,  // spins until a time
  kImposed,   // the profile's latency for a step
  kHalted,    // interrupts on
  kParked,    // halted with interrupts off
  kHung,      // endless loop with interrupts off
};

// What a CPU in kInLatency waits for, in this order.
enum class LatencyPhase : uint8_t {
  kHeld,     // the machine holds it from the beginning
  kInit,     // the profile's latency of an INIT
  kLate,     // an injected fault holds it
  kStartup,  // the profile's latency from SIPI to first instruction
};

// Why a blocked CPU goes on.
enum class WakeReason : uint8_t { kTime, kStore, kInterrupt, kLock };

struct Cpu {
  Cpu(Machine& its_machine, uint32_t its_number, const CpuPlace& its_place,
      const apic::ApicConfig& apic_config, uint64_t seed)
      : machine(its_machine),
        number(its_number),
        place(its_place),
        apic(its_place.apic_id, its_number == 0, apic_config),
        startup(its_number == 0),
        random(seed, its_number),
        steal_random(seed, (uint64_t{1} << 32) + its_number) {}
  Cpu(const Cpu&) = delete;
  Cpu& operator=(const Cpu&) = delete;

  Machine& machine;
  const uint32_t number;
  CpuState state = CpuState::kWaitForSipi;
  bool irqs = false;       // RFLAGS.IF
  bool attention = false;  // an interrupt may be deliverable, or an NMI is
  bool nmi = false;
  bool interrupted = false;  // an interrupt was taken since the last look at preemption
  uint32_t handlers = 0;     // interrupt handlers that run on it
  bool woken = false;        // its resume is set for `wake`; nothing else wakes it before
  WakeReason wake = WakeReason::kTime;

  // With Options::host_cores.
  bool on_core = false;
  bool queued = false;  // for a core
  bool ready = false;   // it wants to go on as soon as it has a core
  bool polite = false;  // while it spins it lets others run after each slice
  uint64_t slice_end_ns = 0;

  uint64_t next_steal_ns = 0;  // with Options::steal: when the next pulse begins

  uint64_t now_ns = 0;  // how far it has run; never behind the machine's time when it runs
  PerCpu* self = nullptr;
  std::vector<abi::TraceRecord> spare_records;  // traced after its ring was full
  Fiber fiber;

  // Spinning on a word: its offset in memory, and the neighbours in the line's list.
  uint64_t word = 0;
  Cpu* next_waiter = nullptr;
  Cpu* previous_waiter = nullptr;
  uint64_t paid_line = ~uint64_t{0};  // the transfer of this line has been paid for by a wake-up
  bool wants_trampoline = false;

  // In kInLatency.
  LatencyPhase phase = LatencyPhase::kHeld;
  bool starting = false;  // a SIPI has been taken, at `start_vector`
  uint64_t latency_ns = 0;
  Vector start_vector;
  std::byte* stack = nullptr;

  // Exploration (chaos.cc).
  bool harmed = false;
  bool hung = false;              // dead until an INIT
  bool init_lost = false;         // an INIT that was to stop it; the guest cannot know
  uint32_t startups_of_kick = 0;  // SIPIs sent to it since its last INIT or reminder
  uint32_t startups_lost = 0;     // of these
  bool was_late = false;          // the fault that makes its first start late has struck
  uint64_t slowness = 0;          // ns that each step takes on top
  int64_t priority = 0;           // with Schedule::kPct
  uint64_t last_message_ns = 0;   // when the last INIT or SIPI arrived, or will
  uint32_t starts_since_init = 0;
  StoreBuffer stores;

  const CpuPlace place;
  apic::LocalApic apic;
  apic::StartupMailbox startup;
  Random random;
  Random steal_random;
};

}  // namespace sipi::sim
